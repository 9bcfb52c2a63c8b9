"""Finds out why a job crashed, from the traceback of a worker or of this process."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.watching.failure_cause import CrashKind

TEXT_LIMIT = 1000
TRACEBACK = "Traceback (most recent call last):"
PLACE = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)(?P<method>, in \w+)?')
_OUR_FILES = r"/(state|coordinated_bolt|committers|coordinator)/[\w/]+\.py"
OURS = re.compile(rf'^  File "[^"]*{_OUR_FILES}"')
NOT_USERS = re.compile(rf"/lib/python3[^/]*/|/pyspark(\.zip)?/|<frozen |{_OUR_FILES}$")
END_OF_TRACEBACK = re.compile(r"\s+at |\s*SQLSTATE|Driver stacktrace|\s*Caused by: ")
OVERDUE = re.compile(r"^[\w.]*OverdueError: ")


@dataclass(frozen=True, slots=True)
class CrashStory:
    """Why a job crashed.

    Attributes:
        reason: the reason in one line, with the cause first.
        kind: what follows from it.
        is_known: whether it is known that a batch can cause this in Spark.
    """

    reason: str
    kind: CrashKind = CrashKind.LOST
    is_known: bool = True


class WorkerTraceback:
    """The first traceback among the lines of an error; empty if there is none."""

    def __init__(self, lines: Iterable[str]) -> None:
        rest = itertools.dropwhile(lambda line: TRACEBACK not in line, lines)
        self._lines = [*itertools.takewhile(lambda line: not END_OF_TRACEBACK.match(line), [*rest][1:])]
        places = (match for line in self._lines if (match := PLACE.match(line)) is not None)
        self._users = [match for match in places if NOT_USERS.search(match["file"]) is None]

    def cause(self) -> str:
        """Returns its last line, with the innermost place in the user's code; "" if there is no traceback."""
        frames = [number for number, line in enumerate(self._lines) if line.startswith("  ")]
        cause = [line.strip() for line in self._lines[frames[-1] + 1 if frames else 0 :] if line.strip()]
        if not cause:
            return ""
        place = "{method} ({file}, line {line})".format(**self._users[-1].groupdict("")) if self._users else ""
        return " | ".join(cause) + place

    def story_of_ours(self) -> CrashStory | None:
        """Returns the story of an error in our own code; None if it is not one.

        No batch is to blame for such an error: what user code raises is returned as a failure, and crashes no job.
        """
        is_ours = not self._users and any(OURS.search(line) for line in self._lines)
        cause = self.cause()
        return (
            CrashStory(cause[:TEXT_LIMIT], CrashKind.ENGINE)
            if is_ours and not cause.startswith("MemoryError")
            else None
        )


def overdue_story(cause: str) -> CrashStory | None:
    """Returns the story of a task that was interrupted because its time was up; None if the cause is another."""
    found = OVERDUE.match(cause)
    return found and CrashStory(cause[found.end() :][:TEXT_LIMIT], CrashKind.OVERDUE)
