"""Which test holds which case of docs/golden-cases.md: as the tests' `case` markers say, and as the document does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

Holders = dict[str, dict[str, list[str]]]
"""Case id -> path below tests/ -> names of the tests there, in the order of the file."""

CASE = re.compile(r"^### (G\d+|P-\d+) ")
FILE = re.compile(r"^- (\S+\.py)$")
TEST = re.compile(r"^  - `(\w+)`$")


def cited(tests: Path) -> Holders:
    """What the markers of every test file below `tests` say.

    A marker on a class names the class, and one on a whole module (`pytestmark`) each of its tests.
    """
    found: Holders = {}
    for path in sorted(tests.rglob("test_*.py")):
        for case, name in _cited_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(case, {}).setdefault(path.relative_to(tests).as_posix(), []).append(name)
    return found


def _cited_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    common = [case for node in tree.body for case in _cases(_of_the_module(node))]
    yield from _cited_by(tree.body, common)


def _cited_by(nodes: Sequence[ast.stmt], common: list[str]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):
                yield from ((case, name) for case in [*common, *_cases(node.decorator_list)])
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield from ((case, name) for case in _cases(node.decorator_list))
                yield from _cited_by(node.body, common)


def _of_the_module(node: ast.stmt) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=ast.List(elts=marks)):
            return marks
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=mark):
            return [mark]
    return []


def _cases(nodes: Sequence[ast.expr]) -> list[str]:
    cases = []
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="case"), keywords=[ast.keyword(value=ast.Constant(value=str(case)))]):
                cases.append(case)
    return cases


def listed(document: str) -> Holders:
    """What the document says; a case without a test has an empty entry."""
    found: Holders = {}
    case = path = ""
    for line in document.splitlines():
        if heading := CASE.match(line):
            case = heading[1]
            found[case] = {}
        elif file := FILE.match(line):
            path = file[1]
            found[case][path] = []
        elif test := TEST.match(line):
            found[case][path].append(test[1])
    return found


NIGHTLY = ast.parse("pytest.mark.nightly", mode="eval").body


def only_nightly(path: Path) -> set[str]:
    """Names the tests and classes of a file that no change runs: marked themselves, by their class or by the file.

    A test with parameters of which only some are marked is not among them.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marks = [mark for node in tree.body for mark in _of_the_module(node)]
    return set(_only_nightly_of(tree.body, all_are=_has_nightly(marks)))


def _only_nightly_of(nodes: Sequence[ast.stmt], *, all_are: bool) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            is_nightly = all_are or _has_nightly(node.decorator_list)
            if is_nightly:
                yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}::{name}" for name in _only_nightly_of(node.body, all_are=is_nightly))


def _has_nightly(marks: Sequence[ast.expr]) -> bool:
    return any(ast.dump(mark) == ast.dump(NIGHTLY) for mark in marks)
