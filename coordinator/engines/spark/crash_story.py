"""Picks the line of a Spark error that explains it, from the hundreds it prints.

An error of the driver's own Python is none of Spark's: no user code runs in a wave there, so a type, a name or a method
that is not as expected is a bug of txbatch, or a PySpark that it does not know.
"""

from __future__ import annotations

import re
import traceback as tracebacks
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from coordinator.engines.spark.java.java_watch import FULL_DISK_SAID, MAKE_ROOM
from coordinator.engines.waves.worker_traceback import NOT_USERS, TEXT_LIMIT, CrashStory, WorkerTraceback, overdue_story
from coordinator.watching.failure_cause import CrashKind
from state.troubles import Trouble

TASK = re.compile(r"\(TID \d+\) \([^)]*\): ")
WRAPPING = re.compile(
    r"^:?\s*(?:Caused by: |An error occurred while calling \S+|Job aborted due to stage failure: "
    r"|Error from python worker:|[\w.$]+(?:Exception|(?<!OutOfMemory)Error):(?: |$))\s*"
)
NOT_IN_JAVA = re.compile(r"Py4JException: ((?:Method|Constructor|Field) .* does not exist)")
CANCELLED = re.compile(r"cancell?ed|interrupted", re.IGNORECASE)
EXECUTOR_LOST = re.compile(r"^ExecutorLostFailure|^FetchFailed")
CERTAIN_ERRORS = (TypeError, ImportError, AttributeError, NameError, NotImplementedError)
"""Raised on the driver, they would be raised again."""
NEEDS = f"`{Trouble.SPARK.command}` says what executors need"


@dataclass(frozen=True, slots=True)
class CrashRemedy:
    """What helps against a known failure.

    Attributes:
        sign: found in the story of one.
        advice: appended to it.
        kind: whether another try may go better.
        leads: the advice is said first, because it tells more than Spark does; of Spark's text, its sign follows.
    """

    sign: re.Pattern[str]
    advice: str
    kind: CrashKind = CrashKind.CERTAIN
    leads: bool = False

    def line(self, cause: str) -> str:
        """Returns the failure and what helps, in one line."""
        if not self.leads:
            return f"{cause[:TEXT_LIMIT]}; {self.advice}"
        said = self.sign.search(cause)
        return f"{self.advice} (Spark: {cause if said is None else said[0]})"


REMEDIES: Sequence[CrashRemedy] = (
    CrashRemedy(
        re.compile(r"^(ModuleNotFoundError|ImportError): "),
        "executors run a Python that cannot import it: install it there, or name the right interpreter in "
        f"PYSPARK_PYTHON; {NEEDS}",
    ),
    CrashRemedy(
        re.compile(r"Cannot run program "),
        f"executors do not find that Python: name one that is there in PYSPARK_PYTHON; {NEEDS}",
    ),
    CrashRemedy(
        re.compile(r"PYTHON_VERSION_MISMATCH|different version in worker"),
        f"driver and executors run different Pythons: name the same version in PYSPARK_PYTHON; {NEEDS}",
    ),
    CrashRemedy(
        FULL_DISK_SAID,
        MAKE_ROOM,
    ),
    CrashRemedy(
        re.compile(r"spark\.driver\.maxResultSize"),
        "raise that setting, or cut smaller transactions",
        CrashKind.LOST,
    ),
    CrashRemedy(
        re.compile(r"OutOfMemoryError"),
        "give Java more by spark.driver.memory (on a cluster spark.executor.memory), or cut smaller transactions",
        CrashKind.LOST,
    ),
    CrashRemedy(
        re.compile(r"Python worker exited unexpectedly(?: \(\w+\))?"),
        "a worker ended without a word: killed, out of memory, or crashed in native code",
        CrashKind.LOST,
        leads=True,
    ),
)


def crash_story(error: BaseException) -> CrashStory:
    """Reads the cause out of what a job raised (driver)."""
    bug = _bug_on_driver(error)
    if bug:
        advice = f"txbatch does not fit this PySpark ({pyspark.__version__}), or has a bug: nothing was lost; report it"
        return CrashStory(f"{bug[:TEXT_LIMIT]}; {advice}", CrashKind.CERTAIN)
    lines = str(error).splitlines()
    traceback = WorkerTraceback(lines)
    in_python = traceback.cause()
    cause = in_python or _java_cause(lines) or type(error).__name__
    is_known = bool(in_python or EXECUTOR_LOST.search(cause))
    known = overdue_story(cause) or _remedied(cause) or traceback.story_of_ours()
    return known or CrashStory(cause[:TEXT_LIMIT], is_known=is_known)


def _remedied(cause: str) -> CrashStory | None:
    found = next((remedy for remedy in REMEDIES if remedy.sign.search(cause)), None)
    return None if found is None else CrashStory(found.line(cause), found.kind)


def blamed(story: CrashStory, do_nothing: Callable[[], object], *, has_processed: bool) -> CrashStory:
    """Returns why a job crashed, once it is known whether Spark runs a job at all (driver, on the job's thread).

    A batch that loses its worker and a Spark that can start none end in the same way. So a job that does nothing runs
    after a crash that may be either: one that fails, too, acquits every batch. And of an unknown cause a batch is
    acquitted until another has been processed.

    Args:
        story: of the job that has crashed.
        do_nothing: runs a job of one task that does nothing; a cancel of the crashed job ends it.
        has_processed: whether any wave of the run was processed.
    """
    if story.kind is not CrashKind.LOST or CANCELLED.search(story.reason):
        return story
    try:
        do_nothing()
    except Exception as error:  # noqa: BLE001 - whatever Spark raises
        found = crash_story(error)
        if CANCELLED.search(found.reason):
            return story
        kind = found.kind if found.kind is CrashKind.CERTAIN else CrashKind.ENGINE
        how = "in the same way" if found.reason == story.reason else f"too: {found.reason}"
        return CrashStory(f"{story.reason}; a job that does nothing fails {how}"[: 2 * TEXT_LIMIT], kind)
    if story.is_known or has_processed:
        return story
    return CrashStory(f"{story.reason}; no batch of this run was processed"[: 2 * TEXT_LIMIT], CrashKind.ENGINE)


def _bug_on_driver(error: BaseException) -> str:
    """Returns the error and its place if it is one of the driver's Python, or of a method that Java lacks; else ""."""
    missing = NOT_IN_JAVA.search(str(error))
    if missing is None and not isinstance(error, CERTAIN_ERRORS):
        return ""
    frames = tracebacks.extract_tb(error.__traceback__)
    if not frames or (missing is None and NOT_USERS.search(frames[-1].filename) is None):
        return ""  # such as the function that makes the DataFrame of a spout
    found = missing[1] if missing is not None else f"{type(error).__name__}: {error}"
    return f"{found} (on the driver, {Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _java_cause(lines: list[str]) -> str:
    """Returns the first line that says more than which call failed."""
    for line in (line.strip() for line in lines):
        if not line or line.startswith("at "):
            continue
        task = TASK.search(line)
        text = line[task.end() :] if task is not None else line
        while (wrapping := WRAPPING.match(text)) is not None:
            text = text[wrapping.end() :]
        if text.strip(" .:"):
            return text
    return ""
