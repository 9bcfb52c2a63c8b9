"""The cases that the mark ``often`` names are there: a misspelled one would leave its test to the night."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_each_case_that_runs_at_every_change_exists() -> None:
    named: dict[str, list[str]] = {}
    for path in (each for each in (ROOT / "tests").rglob("test_*.py") if "mark.often(" in each.read_text()):
        tests = (each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef))
        for test in tests:
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.often":
                    named[f"{path.relative_to(ROOT)}::{test.name}"] = [ast.literal_eval(each) for each in mark.args]
    files = sorted({name.partition("::")[0] for name in named} - {"tests/test_marks.py"})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    cases = defaultdict(list)
    for line in collected.splitlines():
        name, _, case = line.partition("[")
        cases[name].append(case.removesuffix("]"))
    assert [
        (name, each)
        for name, wanted in named.items()
        for each in wanted
        if not any(case == each or fnmatchcase(case, each) for case in cases[name])
    ] == []
