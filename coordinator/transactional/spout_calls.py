"""The one place where the driver calls a user's spout: its exceptions become errors that name the method."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.answers import expect_notes
from coordinator.spouts.transactional import SpoutCoordinator
from state.attempt import TransactionAttempt
from state.codec import CodecError
from state.errors import FailedException, SourceError, TransactionError, UserCodeError
from state.printable import message_of
from state.values.own_copy import own_copy

_LOG = logging.getLogger("txbatch")
START_PAUSE_S = 0.5
Answer = TypeVar("Answer")


class SpoutCalls:
    """Calls methods of a spout's coordinator and committer, and of the spec that makes both (driver).

    Args:
        component_id: the spout's component id.
        tries: most calls of a method that raises `FailedException`, if the run cannot continue without its answer.
        pause: waits for the given number of seconds between two calls.
    """

    def __init__(self, component_id: str, *, tries: int, pause: Callable[[float], None]) -> None:
        self._component_id, self._tries, self._pause = component_id, tries, pause

    def once(self, method: str, ask: Callable[[], Answer], attempt: TransactionAttempt | None = None) -> Answer:
        """Calls once.

        Args:
            method: the method's name, for messages.
            ask: calls the method and checks its answer.
            attempt: the committed attempt that a committer is notified of; it is too late to ask for its replay.

        Raises:
            FailedException: the spout asks to be called again later.
            TransactionError: the method raised another exception; a TransactionError is passed on.
        """
        try:
            return ask()
        except BaseException as error:
            if is_interruption(error):
                raise
            is_ours = isinstance(error, TransactionError) and not isinstance(error, CodecError)
            if is_ours and not (attempt is not None and isinstance(error, FailedException)):
                raise
            raise UserCodeError(
                component_id=self._component_id,
                attempt="" if attempt is None else str(attempt),
                traceback_text=user_traceback(error),
                method=method if attempt is None else "",
            ) from error

    def call_until_answered(self, method: str, ask: Callable[[], Answer]) -> Answer:
        """Calls until the spout answers.

        Raises:
            SourceError: the spout asked for another call too often.
            TransactionError: the spout raised another exception.
        """
        reason = ""
        for attempt in range(self._tries):
            if attempt:
                self._pause(START_PAUSE_S)
            try:
                return self.once(method, ask)
            except FailedException as error:
                reason = str(error)
                _LOG.info("%s of component %r failed, retrying: %s", method, self._component_id, error)
        raise SourceError(
            f"{method} of component {self._component_id!r} failed {self._tries} times; last reason: {reason}; fix "
            "that, then run again, which continues after the last commit"
        )

    def notes(self, spout: SpoutCoordinator, metadata: Any) -> Mapping[str, Any]:
        """Asks for the notes of a transaction that is cut; it cannot be cut again, so the spout has to answer."""
        return self.call_until_answered("notes", lambda: expect_notes(spout.notes(own_copy(metadata))))

    def call_or_default(self, method: str, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Asks for an answer that is only displayed or an estimate; returns `otherwise` if the spout raises."""
        try:
            return self.once(method, ask)
        except TransactionError as error:
            _LOG.debug("%s of component %r failed: %s", method, self._component_id, message_of(error))
            return otherwise

    def close(self, what: str, close: Callable[[], None]) -> None:
        """Closes an object that the spout has made; everything is committed by now, so an error is only logged."""
        try:
            self.once("close", close)
        except TransactionError:
            _LOG.exception("the %s of component %r could not be closed", what, self._component_id)
