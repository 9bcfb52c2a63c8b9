"""Searches the model in docs/model for errors, and for errors that were planted in it: ``python -m tools.model``.

SPIN makes a C program of each search, which visits every state that the bounds allow; none is left out, so what is
reported as sound has no error within them. A planted error changes one rule, and has to be found.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "docs" / "model"
MEMORY_MB = 6_000
DEPTH_MAX = 200_000
SEARCH_TIMEOUT_S = 300
SHORT_BOUNDS = {"TXIDS": 2, "ROWS": 2, "CRASHES": 1, "LOSSES": 1, "RIVALS": 0, "FAILURES": 0}
LONG_BOUNDS = {"TXIDS": 3, "ROWS": 3, "CRASHES": 2, "LOSSES": 2, "RIVALS": 0, "FAILURES": 1}
RIVAL_BOUNDS = {**SHORT_BOUNDS, "RIVALS": 1}


@dataclass(frozen=True, slots=True)
class Search:
    """One search.

    Attributes:
        name: for the table.
        parts: of the model that take part.
        bounds: how much may happen.
        is_of_cycles: whether it looks for runs that never end, instead of broken promises.
        model: the program that it searches.
    """

    name: str
    parts: tuple[str, ...]
    bounds: Mapping[str, int]
    is_of_cycles: bool = False
    model: str = "search.pml"

    def options(self, *more: str) -> list[str]:
        """Returns the definitions that make this search of the model."""
        return [
            f"-D{each}" for each in (*self.parts, *(f"{name}={bound}" for name, bound in self.bounds.items()), *more)
        ]


@dataclass(frozen=True, slots=True)
class Planted:
    """An error in a rule.

    Attributes:
        mistake: what somebody might have written.
        definitions: that change the rule.
        search: the one that has to find it.
    """

    mistake: str
    definitions: tuple[str, ...]
    search: str


@dataclass(frozen=True, slots=True)
class Result:
    """How a search has ended.

    Attributes:
        states: visited.
        seconds: of the search itself, without compiling.
        memory_mb: used by it.
        error: what it has found, empty if nothing.
        is_complete: whether it has visited every state.
    """

    states: int
    seconds: float
    memory_mb: float
    error: str
    is_complete: bool


def _of_shards(name: str, parts: tuple[str, ...], **bounds: int) -> Search:
    return Search(name, parts, {"RUNS": 2, "GROUPS": 1, "LOSSES": 1, **bounds}, model="shards.pml")


PLAIN, PROMPT = ("PLAIN",), ("PLAIN", "NONE_LATE")
SEARCHES = (
    Search("core", PROMPT, LONG_BOUNDS),
    Search("two runs", PROMPT, {**RIVAL_BOUNDS, "TXIDS": 3, "ROWS": 3}),
    Search("two runs, more faults", PROMPT, {**RIVAL_BOUNDS, "CRASHES": 2, "LOSSES": 2}),
    Search("refused commits", (*PROMPT, "REFUSALS"), {**LONG_BOUNDS, "CRASHES": 1}),
    Search("late calls", PLAIN, {**LONG_BOUNDS, "TXIDS": 2, "ROWS": 2}),
    Search("late calls, two runs", PLAIN, RIVAL_BOUNDS),
    Search("partitions", ("PARTITIONED", "NONE_LATE", "PARTITIONS=2"), {**LONG_BOUNDS, "TXIDS": 2, "ROWS": 2}),
    Search("partitions, two runs", ("PARTITIONED", "NONE_LATE", "PARTITIONS=2"), RIVAL_BOUNDS),
    Search("opaque", ("OPAQUE", "NONE_LATE", "PARTITIONS=2"), {**LONG_BOUNDS, "ROWS": 2}),
    Search("opaque, two runs", ("OPAQUE", "NONE_LATE", "PARTITIONS=2"), RIVAL_BOUNDS),
    Search("barrier", ("PLAIN", "NONE_LATE", "DURABLE"), LONG_BOUNDS),
    Search("barrier, two runs", ("PLAIN", "NONE_LATE", "DURABLE"), RIVAL_BOUNDS),
    Search("quarantine", ("PLAIN", "NONE_LATE", "QUARANTINE"), LONG_BOUNDS),
    Search("half a write", ("PLAIN", "NONE_LATE", "TEARS"), {**LONG_BOUNDS, "TXIDS": 2, "ROWS": 2}),
    Search("half a write, two runs", ("PLAIN", "NONE_LATE", "TEARS"), RIVAL_BOUNDS),
    Search("drop", ("PLAIN", "DROPS"), SHORT_BOUNDS),
    Search("drop, two runs", ("PLAIN", "NONE_LATE", "DROPS"), RIVAL_BOUNDS),
    Search("late takeovers", ("PLAIN", "LATE_TAKEOVERS"), {**RIVAL_BOUNDS, "CRASHES": 0}),
    Search("copies restored", (*PROMPT, "BACKUPS"), {**RIVAL_BOUNDS, "CRASHES": 2, "LOSSES": 2}),
    Search("progress", PROMPT, LONG_BOUNDS, is_of_cycles=True),
    Search("progress, two runs", PROMPT, RIVAL_BOUNDS, is_of_cycles=True),
    _of_shards("shards", (), GROUPS=2, LOSSES_IN_ALL=2),
    _of_shards("shards, other batches", ("FREE",), GROUPS=2, LOSSES_IN_ALL=2),
    _of_shards("shards, losses everywhere", (), LOSSES_IN_ALL=3),
    _of_shards("shards, two losses each", ("FREE",), LOSSES=2, LOSSES_IN_ALL=4),
    _of_shards("shards, after another run", ("FREE", "AFTER_ANOTHER"), RUNS=3, LOSSES_IN_ALL=1),
)
PLANTED = (
    Planted(
        "metadata is stored at any revision (the first review)", ("METADATA_AT_ANY_REVISION",), "two runs, more faults"
    ),
    Planted(
        "the same, and a start accepts the hole that this leaves",
        ("METADATA_AT_ANY_REVISION", "HOLES_ACCEPTED"),
        "two runs, more faults",
    ),
    Planted(
        "a right is found missing in the middle of a commit (the first review)",
        ("RIGHTS_ASKED_TOO_LATE",),
        "refused commits",
    ),
    Planted("nothing compares revisions", ("NO_REVISION",), "core"),
    Planted("nothing compares fences, or revisions", ("NO_FENCE", "NO_REVISION"), "two runs"),
    Planted("a takeover leaves the revision as it is", ("TAKEOVER_KEEPS_REVISION", "NO_FENCE"), "two runs"),
    Planted(
        "any call at the revision before is taken for the last one", ("ALREADY_FOR_ANYTHING", "NO_FENCE"), "two runs"
    ),
    Planted("half a write is not noticed", ("HALF_WRITE_UNNOTICED",), "half a write"),
    Planted("a failure drops its attempt, and not the later ones", ("FAILURE_DROPS_ITSELF_ONLY",), "opaque"),
    Planted("a commit forgets its own position", ("METADATA_CLEANED_ONE_TOO_FAR",), "core"),
    Planted("an early group is published for other attempts", ("EARLY_GROUP_KEPT",), "opaque"),
    Planted("what is committed is released at once", ("RELEASED_AT_ONCE",), "barrier"),
    Planted("a barrier asks again without writing", ("BARRIER_ASKS_WITHOUT_WRITING",), "barrier"),
    Planted("a commit leaves out what the spout has heard of", ("TOLD_LEFT_OUT",), "barrier"),
    Planted("a republished batch stays in quarantine", ("REPUBLISHED_NOT_TAKEN",), "quarantine"),
    Planted(
        "a drop does not count its calls, nor name the states at its end",
        ("DROP_CALLS_UNCOUNTED", "DROP_FORGETS_STATES"),
        "drop",
    ),
    Planted("a fence does not name its revision", ("FENCE_WITHOUT_REVISION",), "late takeovers"),
    Planted("a start that was raced tries again by the same token", ("ONE_TOKEN_FOR_ALL_TRIES",), "copies restored"),
    Planted("shards: a run that is done asks nobody whether it is", ("NO_CONFIRMATION",), "shards"),
    Planted("shards: a takeover leaves servers apart", ("NO_RECOVERY",), "shards"),
    Planted("shards: nothing compares revisions", ("NO_REVISION",), "shards, other batches"),
    Planted("shards: a group is applied before it is decided", ("APPLIED_BEFORE_DECISION",), "shards"),
    Planted("shards: a group is decided before it is staged", ("DECIDED_BEFORE_STAGED",), "shards, other batches"),
    Planted("shards: a takeover reads the servers after it", ("READS_LATE",), "shards, losses everywhere"),
    Planted("shards: a fence is a bare counter", ("NO_TOKEN",), "shards, two losses each"),
    Planted("shards: whatever is staged is applied", ("APPLIES_WHATEVER_IS_STAGED",), "shards, after another run"),
)


def searched(search: Search, *more: str, folder: Path) -> Result:
    """Runs one search in a folder of its own.

    Raises:
        RuntimeError: SPIN or the compiler cannot make the program.
    """
    _made(["spin", "-a", *search.options(*more), str(MODELS / search.model)], folder)
    kind = "-DNP" if search.is_of_cycles else "-DSAFETY"
    flags = ["-O2", "-w", "-DCOLLAPSE", kind, "-DVECTORSZ=2048", f"-DMEMLIM={MEMORY_MB}"]
    _made(["gcc", *flags, "-o", "pan", "pan.c"], folder)
    begun_s = time.monotonic()
    cycles = ["-l"] if search.is_of_cycles else []
    program = [str(folder / "pan"), f"-m{DEPTH_MAX}", *cycles]
    try:
        ended = subprocess.run(
            program, cwd=folder, capture_output=True, text=True, timeout=SEARCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Result(0, SEARCH_TIMEOUT_S, 0.0, "", is_complete=False)
    return _result(ended.stdout, time.monotonic() - begun_s)


def _result(said: str, seconds: float) -> Result:
    found = re.search(r"^pan:\d+: (.*?) \(at depth", said, re.MULTILINE)
    states = re.search(r"(\S+) states, stored", said)
    memory = re.search(r"(\S+)\s+total actual memory usage", said)
    is_complete = "errors: 0" in said and "max search depth too small" not in said and "reached -DMEMLIM" not in said
    return Result(
        int(float(states.group(1))) if states else 0,
        seconds,
        float(memory.group(1)) if memory else 0.0,
        found.group(1) if found else "",
        is_complete and found is None,
    )


def _made(command: Sequence[str], folder: Path) -> None:
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if made.returncode or "Error:" in made.stdout:
        raise RuntimeError(f"{' '.join(command)}: {made.stdout}{made.stderr}")


def main(arguments: list[str] | None = None) -> int:
    """Returns how many searches or planted errors have failed, 1 at most."""
    parser = argparse.ArgumentParser(prog="python -m tools.model", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="searches, or parts of what a planted error is called")
    parser.add_argument("--planted", action="store_true", help="only the planted errors")
    given = parser.parse_args(arguments)
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            print(f"{program} is missing; run: sudo apt-get install -y spin gcc")
            return 1
    failures = 0 if given.planted else sum(not _is_sound(each) for each in SEARCHES if _is_asked(each.name, given.only))
    for planted in PLANTED:
        if _is_asked(planted.mistake, given.only):
            failures += not _is_found(planted)
    print(f"{failures} failed" if failures else "all as expected")
    return min(failures, 1)


def _is_asked(name: str, only: Sequence[str]) -> bool:
    return not only or any(each in name for each in only)


def _is_sound(search: Search) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        result = searched(search, folder=Path(folder))
    verdict = "sound" if result.is_complete else result.error or "not searched to the end"
    _print_line(search.name, result, verdict)
    return result.is_complete


def _is_found(planted: Planted) -> bool:
    search = next(each for each in SEARCHES if each.name == planted.search)
    with tempfile.TemporaryDirectory() as folder:
        result = searched(search, *planted.definitions, folder=Path(folder))
    _print_line(f"{planted.mistake} [{planted.search}]", result, "found" if result.error else "NOT FOUND")
    return bool(result.error)


def _print_line(name: str, result: Result, verdict: str) -> None:
    figures = f"{result.states:>11,} states {result.seconds:6.1f} s {result.memory_mb:6.0f} MB"
    print(f"{name:92} {figures}  {verdict}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
