"""Why an attempt failed: the phase, the cause in one word and in one line; and what to do after a crash. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum

from coordinated_bolt.completeness.failure import FailureKind
from state.printable import one_line


class Phase(StrEnum):
    """A phase of an attempt."""

    PROCESSING = "processing"
    COMMIT = "commit"


class CrashKind(Enum):
    """What to do after a crash."""

    LOST = "lost"
    """A worker died, or another crash that may not happen again: retry with fewer attempts."""
    OVERDUE = "overdue"
    """The phase took too long: retry with fewer attempts, and never run as many again."""
    WAITED = "waited"
    """The phase was too long because it waited for executors: retry as many attempts, and count it against none."""
    ENGINE = "engine"
    """The engine could not have run any batch: retry, and never blame the batch."""
    CERTAIN = "certain"
    """A retry would fail in the same way: stop."""


class FailureCause(StrEnum):
    """The cause by which statistics and metrics count a failed attempt."""

    USER_CODE = "user_code"
    """User code raised something that is not a FailedException."""
    BAD_RECORD = "bad_record"
    SOURCE = "source"
    """The input cannot be read the way it was cut."""
    STATE_REFUSED = "state_refused"
    """The server refused a read, or the changes of the transaction."""
    STATE_UNREACHABLE = "state_unreachable"
    """A read was not answered, or was too late."""
    ASKED_FOR = "asked_for"
    """User code asked for a replay with a FailedException."""
    INCOMPLETE = "incomplete"
    """Counts, reports or edges did not match: data was lost, doubled or altered on the way."""
    WORKER_LOST = "worker_lost"
    """A worker died, or another crash that may not happen again."""
    TIMEOUT = "timeout"
    """A wave or a commit phase took longer than the message timeout."""
    ENGINE = "engine"
    """Spark cannot run the attempt."""
    LOWER_FAILED = "lower_failed"
    """The attempt itself was good, but a lower transaction failed, on which later ones may depend."""

    @property
    def words(self) -> str:
        """The cause in words, such as "worker lost"."""
        return self.value.replace("_", " ")

    @classmethod
    def of(cls, kind: FailureKind | CrashKind) -> FailureCause:
        """Returns the cause for an attempt that a task has failed, or whose phase crashed."""
        return _CAUSES[kind]


_CAUSES: dict[FailureKind | CrashKind, FailureCause] = {
    FailureKind.USER: FailureCause.USER_CODE,
    FailureKind.RECORD: FailureCause.BAD_RECORD,
    FailureKind.SOURCE: FailureCause.SOURCE,
    FailureKind.STATE: FailureCause.STATE_REFUSED,
    FailureKind.UNREACHABLE: FailureCause.STATE_UNREACHABLE,
    FailureKind.FAILED: FailureCause.ASKED_FOR,
    FailureKind.UNANSWERED: FailureCause.STATE_UNREACHABLE,
    FailureKind.INCOMPLETE: FailureCause.INCOMPLETE,
    CrashKind.LOST: FailureCause.WORKER_LOST,
    CrashKind.OVERDUE: FailureCause.TIMEOUT,
    CrashKind.WAITED: FailureCause.TIMEOUT,
    CrashKind.ENGINE: FailureCause.ENGINE,
    CrashKind.CERTAIN: FailureCause.ENGINE,
}


GIST_LIMIT = 300
PLACE_LIMIT = 150
"""The part of it for the line before a traceback: that line may have a long tuple, and the cause follows it."""
TRACEBACK = "Traceback (most recent call last):"


def gist(text: str) -> str:
    """Returns the first line of a message; with a traceback, followed by the line of the exception."""
    lines = text.strip().splitlines() or [""]
    head, is_traceback, _ = lines[0].partition(TRACEBACK)
    if is_traceback:
        return one_line(f"{head}{_raised(lines)}", GIST_LIMIT)
    if len(lines) > 1 and head.endswith(":"):  # such as a UserCodeError: the place, then the exception
        return f"{one_line(head, PLACE_LIMIT)} {one_line(_raised(lines), GIST_LIMIT - PLACE_LIMIT)}"
    return one_line(head, GIST_LIMIT)


def raised(text: str) -> str:
    """Returns the line of the exception in a traceback; for other text, the last line."""
    return _raised(text.strip().splitlines() or [""])


def _raised(lines: Sequence[str]) -> str:
    """Returns the line after the last frame of a traceback: an exception's message may have several lines."""
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    after = lines[frames[-1] + 1 :] if frames else ()
    return (after or lines[-1:])[0].strip()
