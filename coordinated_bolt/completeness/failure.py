"""Why an attempt failed, as plain data that travels from executors to the driver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from state.attempt import TransactionAttempt
from state.errors import (
    BadInputError,
    ProtocolError,
    SourceError,
    StateRefusedError,
    StateUnreachableError,
    TransactionError,
    UserCodeError,
)
from state.troubles import Trouble


class FailureKind(IntEnum):
    """Kinds of failure, the most telling first; see `most_telling`."""

    USER = 1
    """User code raised something that is not a FailedException: halt."""
    RECORD = 2
    """A record of the input is bad: halt."""
    SOURCE = 3
    """The input cannot be read the way it was cut: halt."""
    STATE = 4
    """Redis refused a read: halt."""
    UNREACHABLE = 5
    """Redis did not answer, and a replay is impossible: halt."""
    FAILED = 6
    """A FailedException: replay."""
    UNANSWERED = 7
    """A read was not answered, or was too late: replay."""
    INCOMPLETE = 8
    """Counts, reports or edges do not match: replay."""


_ERRORS: dict[FailureKind, type[TransactionError]] = {
    FailureKind.RECORD: BadInputError,
    FailureKind.SOURCE: SourceError,
    FailureKind.STATE: StateRefusedError,
    FailureKind.UNREACHABLE: StateUnreachableError,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure: what happened, and where.

    Attributes:
        kind: the kind, which decides between replay and halt.
        component_id: the component that failed.
        task_index: the task of that component, from 0.
        text: the message, or the user's traceback.
        tuple_text: the tuple that was being executed, if any.
        batch: the batch of a sub-topology in which it happened; empty elsewhere.
        trouble: the `Trouble` that explains it, if it is closer than the kind's usual one.
    """

    kind: FailureKind
    component_id: str
    task_index: int
    text: str
    tuple_text: str = ""
    batch: str = ""
    trouble: str = ""

    def halts(self) -> bool:
        """Returns whether a replay would only fail again: true of the kinds up to UNREACHABLE."""
        return self.kind <= FailureKind.UNREACHABLE

    def is_of_batch(self) -> bool:
        """Returns whether the batch, or user code on it, is to blame: not the engine, the server or the whole input.

        Only such a batch may be quarantined.
        """
        return self.kind in (FailureKind.USER, FailureKind.RECORD, FailureKind.FAILED)

    def to_error(self, attempt: TransactionAttempt | None = None) -> TransactionError:
        """Returns the error with which a run halts on this failure; called by the driver.

        Args:
            attempt: the attempt that failed; None in a plain topology, where `batch` is used.
        """
        during = self.batch if attempt is None else str(attempt)
        if self.kind is FailureKind.USER:
            return UserCodeError(
                component_id=self.component_id,
                task_index=self.task_index,
                attempt=during,
                tuple_text=self.tuple_text,
                traceback_text=self.text,
            )
        where = f"{self.text} (component {self.component_id!r}" + (f", attempt {during})" if during else ")")
        error = _ERRORS.get(self.kind, ProtocolError)(where)
        return error.about(Trouble(self.trouble)) if self.trouble else error

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec; invalid Unicode, which a file name may contain, is escaped."""
        texts = [_valid(self.text), _valid(self.tuple_text), self.batch]
        return [int(self.kind), self.component_id, self.task_index, *texts, self.trouble]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Failure:
        """Inverse of `to_wire`."""
        return cls(FailureKind(wire[0]), *wire[1:])

    def __str__(self) -> str:
        at = f", at tuple {self.tuple_text}" if self.kind is FailureKind.FAILED and self.tuple_text else ""
        return f"{self.component_id}[{self.task_index}]: {self.text}{at}"


def most_telling(failures: Iterable[Failure | None]) -> Failure | None:
    """Returns the failure to report for an attempt: the first of the lowest kind, or None without failures.

    Called wherever failures meet: on a task, at the acker, and when a group is decided.
    """
    known = (failure for failure in failures if failure is not None)
    return min(known, key=lambda failure: failure.kind, default=None)


def _valid(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
