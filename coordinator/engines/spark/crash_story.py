"""Picks the line that explains a Spark error from the hundreds that it prints.

An error in the driver's own Python is not Spark's: no user code of a wave runs there, so an unexpected type, name or
method is a bug of txbatch, or a PySpark that it does not know.
"""

from __future__ import annotations

import re
import traceback as tracebacks
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from coordinator.engines.spark.java.java_watch import FULL_DISK_TEXT, MAKE_ROOM
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
"""Errors that, once raised on the driver, would be raised again."""
NEEDS = f"`{Trouble.SPARK.command}` says what executors need"


@dataclass(frozen=True, slots=True)
class CrashRemedy:
    """The remedy for a known failure.

    Attributes:
        sign: the pattern by which the failure is recognized in a story.
        advice: appended to the story.
        kind: whether another try may go better.
        leads: whether the advice comes first, as it explains more; of Spark's text, only the sign follows.
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
        FULL_DISK_TEXT,
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
    """Finds the cause in the error that a job raised (driver)."""
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
    """Returns why a job crashed, after finding out whether Spark runs any job at all (driver, on the job's thread).

    A crash looks the same whether a batch has killed its worker or Spark cannot start any. So after such a crash a job
    runs that does nothing: if it fails, too, no batch is to blame. If the cause is unknown, no batch is to blame until
    the run has processed another.

    Args:
        story: the story of the crashed job.
        do_nothing: runs a job of one task that does nothing; cancelling the crashed job ends it.
        has_processed: whether the run has processed any wave.
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
    """Returns the error and its line if it is one of the driver's own Python, or a method that Java lacks; else ""."""
    missing = NOT_IN_JAVA.search(str(error))
    if missing is None and not isinstance(error, CERTAIN_ERRORS):
        return ""
    frames = tracebacks.extract_tb(error.__traceback__)
    if not frames or (missing is None and NOT_USERS.search(frames[-1].filename) is None):
        return ""  # such as the function that makes the DataFrame of a spout
    found = missing[1] if missing is not None else f"{type(error).__name__}: {error}"
    return f"{found} (on the driver, {Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _java_cause(lines: list[str]) -> str:
    """Returns the first line that does not only name the call that failed."""
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
