"""Turns exceptions caught by a task, from user code or from txbatch's states and sources, into `Failure` values."""

from __future__ import annotations

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.user_traceback import user_traceback
from state.errors import (
    BadInputError,
    FailedException,
    SourceError,
    StaleReadError,
    StateRefusedError,
    StateUnreachableError,
    TransactionError,
)
from state.printable import SENTENCE_LIMIT, message_of

_KINDS = (
    (StaleReadError, FailureKind.UNANSWERED),
    (StateUnreachableError, FailureKind.UNANSWERED),
    (FailedException, FailureKind.FAILED),
    (BadInputError, FailureKind.RECORD),
    (SourceError, FailureKind.SOURCE),
    (StateRefusedError, FailureKind.STATE),
)
"""Exception class -> kind of failure; the first class that fits decides."""


def failure_of(error: BaseException, component_id: str, task_index: int, tuple_text: str = "") -> Failure:
    """Classifies an exception from user code or a state handle; the text is printable and bounded."""
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), FailureKind.USER)
    if kind is FailureKind.USER:
        text = user_traceback(error)
    elif kind in (FailureKind.UNANSWERED, FailureKind.FAILED):
        text = f"{type(error).__name__}: {message_of(error)}"
    else:
        text = message_of(error, SENTENCE_LIMIT)
    return Failure(kind, component_id, task_index, text, tuple_text, trouble=_closer_trouble(error))


def lasting_failure_of(error: BaseException, component_id: str, task_index: int, tuple_text: str = "") -> Failure:
    """Classifies an exception where a retry is impossible: there even a `FailedException` is a mistake.

    Errors of txbatch's sources and states, about the input or the server, keep their kind.
    """
    if isinstance(error, StateUnreachableError):
        return Failure(FailureKind.UNREACHABLE, component_id, task_index, message_of(error, SENTENCE_LIMIT), tuple_text)
    if isinstance(error, (SourceError, StateRefusedError)):
        return failure_of(error, component_id, task_index, tuple_text)
    return Failure(FailureKind.USER, component_id, task_index, user_traceback(error), tuple_text)


def _closer_trouble(error: BaseException) -> str:
    """Returns the trouble set where `error` was raised; "" if it is only the class's."""
    if not isinstance(error, TransactionError) or error.trouble is type(error).trouble:
        return ""
    return error.trouble.value
