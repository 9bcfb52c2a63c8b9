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
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.often":
                    named[f"{path.relative_to(ROOT)}::{node.name}"] = [ast.literal_eval(each) for each in mark.args]
    files = sorted({test.partition("::")[0] for test in named} - {"tests/test_marks.py"})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    cases = defaultdict(list)
    for line in collected.splitlines():
        test, _, case = line.partition("[")
        cases[test].append(case.removesuffix("]"))
    assert [
        (test, each)
        for test, wanted in named.items()
        for each in wanted
        if not any(case == each or fnmatchcase(case, each) for case in cases[test])
    ] == []
