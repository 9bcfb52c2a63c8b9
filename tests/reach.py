"""Runs the tests that a change reaches, the nearest first, for about five minutes: ``make gate``.

A test file is as near as the number of imports between it and what has changed. The tests of the house itself (right
in ``tests/``) come first, since any change may break a rule. How long each file takes is kept in
``tests/durations.json``; what does not fit into the time is left to ``make test``, and counted.

    python -m tests.reach --since origin/main --minutes 5 -- -x
    python -m tests.reach --record junit.xml     # after a whole `make test ARGS=--junitxml=junit.xml`
    python -m tests.reach --slower junit.xml     # names the files that take longer than they did
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

from tests.architecture import PACKAGES, imports, sources

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / "tests" / "durations.json"
FOLDERS = (*PACKAGES, "benchmarks", "examples", "tools", "tests")
PROCESSES = 2
START_S = 25.0
"""What pytest takes to import and collect."""
LEAST_S = 1.0
SLOWER, SLOWER_S = 1.2, 2.0
MARKS = "not nightly and not browser and not chaos"


def changed_since(revision: str) -> list[str]:
    """Returns the files that differ from a revision, committed or not."""
    commands = (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"])
    listed = (subprocess.run(["git", *each], cwd=ROOT, capture_output=True, text=True, check=True) for each in commands)
    return sorted({name for found in listed for name in found.stdout.splitlines()})


def importers() -> dict[str, set[str]]:
    """Returns file -> the files that import it, or something in it."""
    trees = dict(sources(ROOT, *FOLDERS))
    found: dict[str, set[str]] = {path: set() for path in trees}
    for path, tree in trees.items():
        for _, name in imports(tree):
            if (imported := _file_of(name, found)) and imported != path:
                found[imported].add(path)
    return found


def _file_of(name: str, known: Mapping[str, object]) -> str | None:
    """Returns the file of a module, or of a name in one; of what a package hands on, the file that defines it."""
    while name:
        path = name.replace(".", "/")
        if f"{path}.py" in known:
            return f"{path}.py"
        outer, _, inner = name.rpartition(".")
        if outer in PACKAGES:
            defined = getattr(getattr(import_module(outer), inner, None), "__module__", outer)
            return _file_of(defined, known) if defined != outer else f"{outer}/__init__.py"
        name = outer
    return None


def distances(changed: Iterable[str], ways: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Returns each file that the change reaches, and how many imports away it is."""
    found = dict.fromkeys(changed, 0)
    waiting = list(found)
    for path in waiting:
        for reached in ways.get(path, ()):
            if reached not in found:
                found[reached] = found[path] + 1
                waiting.append(reached)
    return found


def mentions(changed: Sequence[str]) -> dict[str, int]:
    """Returns the files of tests that name a changed one: a module by its path, another file or its folder by name."""
    others = [Path(path) for path in changed if not path.endswith(".py")]
    names = {part for path in others for part in (path.name, path.stem, path.parent.name)}
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    wanted = [f'"{name}"' for name in names - {""}] + [f"/{name}" for name in names - {""}]
    wanted += [f'"{path}"' for path in changed if path.endswith(".py")]
    return {
        path.relative_to(ROOT).as_posix(): 1 for path, text in texts.items() if any(each in text for each in wanted)
    }


def chosen(near: Mapping[str, int], durations: Mapping[str, float], seconds: float) -> tuple[list[str], int]:
    """Returns the test files that fit into the time of all processes, and how many that are reached do not."""
    tests = {path: far for path, far in near.items() if Path(path).name.startswith("test_")}
    for path in durations:
        if path.count("/") == 1 and durations[path] < seconds / 10:
            tests[path] = -1
    ordered = sorted(tests, key=lambda path: (tests[path], durations.get(path, LEAST_S), path))
    taken: list[str] = []
    left = (seconds - START_S) * PROCESSES
    for path in ordered:
        cost = max(durations.get(path, LEAST_S), 0.05)
        if cost <= left and (ROOT / path).exists():
            taken.append(path)
            left -= cost
    return taken, len(ordered) - len(taken)


def measured(report: Path) -> dict[str, float]:
    """Returns test file -> seconds, from a report of pytest's ``--junitxml``."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        path = case.get("classname", "").replace(".", "/")
        while path and not (ROOT / f"{path}.py").exists():  # the class of a test
            path = path.rpartition("/")[0]
        if path:
            seconds[f"{path}.py"] += float(case.get("time", 0))  # type: ignore[assignment] # a Counter of floats
    return {path: round(float(taken), 1) for path, taken in sorted(seconds.items())}


def slower(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """Returns what takes a fifth longer than it did, on a machine as fast as most files say it is."""
    both = [path for path in now if before.get(path, 0) > LEAST_S]
    pace = median([now[path] / before[path] for path in both]) if both else 1.0
    return [
        f"{path}: {before[path]:.1f} s -> {now[path] / pace:.1f} s"
        for path in both
        if now[path] / pace > max(before[path] * SLOWER, before[path] + SLOWER_S)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Chooses and runs the tests, or takes down how long they take."""
    parser = argparse.ArgumentParser(prog="python -m tests.reach", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--since", default="HEAD", help="revision that the change is compared with (default HEAD)")
    parser.add_argument("--minutes", type=float, default=5.0, help="(default %(default)s)")
    parser.add_argument("--list", action="store_true", help="only list the files")
    parser.add_argument("--record", type=Path, metavar="XML", help="keep the durations of a whole run")
    parser.add_argument("--slower", type=Path, metavar="XML", help="name the files that take a fifth longer")
    parser.add_argument("more", nargs="*", help="more arguments for pytest, after --")
    options = parser.parse_args(arguments)
    durations: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
    if options.record:
        DURATIONS.write_text(json.dumps(measured(options.record), indent=0) + "\n", encoding="utf-8")
        return 0
    if options.slower:
        named = slower(durations, measured(options.slower))
        print("\n".join(named) or "no file takes a fifth longer")
        return 1 if named else 0
    changed = changed_since(options.since)
    near = distances([*changed, *mentions(changed)], importers())
    taken, left = chosen(near, durations, options.minutes * 60)
    print(
        f"{len(changed)} files changed; {len(taken)} test files, and {left} more that they reach: make test", flush=True
    )
    if options.list or not taken:
        print("\n".join(taken))
        return 0
    how = ["-q", "-n", str(PROCESSES), "--dist", "loadfile", "--no-loadscope-reorder", "--hypothesis-profile=change"]
    command = [sys.executable, "-m", "pytest", *how, "-m", MARKS, *options.more, *taken]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
