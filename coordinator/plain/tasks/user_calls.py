"""Calls the user code of one spout or bolt of a plain topology, where no exception leads to a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_failure import lasting_failure_of
from coordinated_bolt.user_traceback import call
from coordinated_bolt.wiring import TaskWiring


class UserCalls:
    """Calls the methods of one task's component and hooks (executor, or driver for spouts); never raises their errors.

    Args:
        wiring: the task, which its failures name.
    """

    def __init__(self, wiring: TaskWiring) -> None:
        self._where = (wiring.component_id, wiring.task_index)

    def call(self, method: Callable[..., object], *arguments: Any) -> Failure | None:
        """Calls a method; returns its exception, even a `FailedException`, as a failure that ends the run.

        A method that returns a value fails, too, because the value would be ignored.
        """
        try:
            call(method, *arguments)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self.failure(error)
        return None

    def close(self, closings: Iterable[Callable[[], object]]) -> Failure | None:
        """Calls all functions in order, even if one raises; returns the first failure."""
        return close_all(partial(self.call, closing) for closing in closings)

    def failure(self, error: BaseException, tuple_text: str = "") -> Failure:
        """Returns the failure for an error of user code; `tuple_text` shows the tuple being executed."""
        return lasting_failure_of(error, *self._where, tuple_text)


def close_all(closings: Iterable[Callable[[], Failure | None]]) -> Failure | None:
    """Calls all functions in order, and returns the first failure, if any."""
    failures = [close() for close in closings]
    return next((failure for failure in failures if failure is not None), None)


def end_on(failure: Failure | None) -> None:
    """Raises the failure that a task returned; does nothing if it returned none.

    Raises:
        UserCodeError, SourceError, StateRefusedError: see `Failure.to_error`.
    """
    if failure is not None:
        raise failure.to_error()
