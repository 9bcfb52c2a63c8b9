"""What the documentation shows is what happens, and what it names is there."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator import BackgroundRun, LocalCluster, RunStatistics
from coordinator.watching.failure_cause import FailureCause
from coordinator.watching.log_records import FIELDS
from state.redis_client.function_library import LIBRARY_NAME
from tests.support import golden_cases
from tests.support.documents import FENCED, anchors
from tests.support.telemetry.metric_names import documented_names

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
DOCUMENTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "tests/simulation/mutants/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")),
)
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
IMPORTED = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]+))?\)")
MODULE = re.compile(r"[\w.-]+(/[\w.-]+)*\.(py|lua|sh)")
FOLDER = re.compile(r"[\w.-]+(/[\w.-]+)*/")
OURS = re.compile(r"I?[A-Z][a-z]+[A-Z]\w*|[a-z]+(_[a-z]+)+")
"""What looks like a class or a method of ours: several words, in capitals or with underscores."""

PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
COMPANIONS = ("examples", "tools", "benchmarks")
NOT_HERE = {"IStatefulBolt", "IWindowedBolt", "LinearDRPCTopologyBuilder", "ShellBolt"}


def read(document):
    return (ROOT / document).read_text(encoding="utf-8")


def test_the_changelog_names_the_functions_as_they_are_called_now():
    assert set(re.findall(r"txbatch_\d+", read("CHANGELOG.md"))) == {LIBRARY_NAME}


def run_blocks(document, name):
    blocks = PYTHON_BLOCK.findall(read(document))
    namespace: dict[str, Any] = {"__name__": name}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{document}, block {number}", "exec"), namespace)
    return len(blocks)


@pytest.fixture
def saved_word_count(tmp_path, monkeypatch):
    """A reader's folder: the current one, with nothing of ours in it but the README's program, in classes."""
    (tmp_path / "word_count.py").write_text(PYTHON_BLOCK.findall(read("README.md"))[2])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "word_count", raising=False)
    yield tmp_path
    sys.modules.pop("word_count", None)


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if document != "docs/examples.md"])
def test_no_block_imports_what_is_not_installed(document):
    imported = [name for block in PYTHON_BLOCK.findall(read(document)) for name in IMPORTED.findall(block)]
    assert [name for name in imported if name in {*COMPANIONS, "tests"}] == []


@pytest.mark.usefixtures("saved_word_count")
@pytest.mark.parametrize(
    ("page", "count"),
    [("testing.md", 8), ("proving.md", 1), ("state.md", 4), ("short-form.md", 9), ("dead-letters.md", 3)],
)
def test_every_block_of_a_page_runs(page, count):
    assert run_blocks(f"docs/{page}", "guide") == count


def start_in_process(topology, **_where):
    """Stands in for `start`: the same handle, and a LocalCluster instead of Spark and a server."""

    def work(begun, progressed):
        with LocalCluster() as cluster:
            run = cluster.submit(topology)
            begun(run._coordinator)
            run.run_until_idle()
            progressed(run.statistics)
            return run.statistics

    return BackgroundRun(topology.topology_id, work, RunStatistics())


@pytest.mark.usefixtures("saved_word_count")
def test_every_block_on_notebooks_runs(monkeypatch):
    monkeypatch.setattr("coordinator.start", start_in_process)
    assert run_blocks("docs/notebook.md", "notebook_guide") == 6


@pytest.mark.redis
@pytest.mark.parametrize("form", [0, 2])
def test_every_block_of_the_readme_runs_and_counts(saved_word_count, capsys, form):
    (saved_word_count / "word_count.py").write_text(PYTHON_BLOCK.findall(read("README.md"))[form])
    (saved_word_count / "lines.txt").write_text("the cat\nthe dog\n")
    assert run_blocks("README.md", "readme") == 3
    assert capsys.readouterr().out.splitlines() == ["2"]


def without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.unparse(tree)


def test_the_readme_shows_the_word_count_without_its_docstrings():
    assert without_docstrings(PYTHON_BLOCK.findall(read("README.md"))[2]) == without_docstrings(
        read("examples/word_count.py")
    )


def test_the_readme_is_read_in_three_minutes():
    assert len(read("README.md").splitlines()) <= 136  # of which ten are the short form


@cache
def ours():
    """Every module of ours, and what it defines: classes, functions, parameters, attributes, metrics, log fields."""
    known = {*vars(builtins), *documented_names(), *(cause.value for cause in FailureCause), *FIELDS}
    for path in (path for package in (*PACKAGES, *COMPANIONS) for path in (ROOT / package).rglob("*.*")):
        known.add(path.stem)
        for node in ast.walk(ast.parse(path.read_bytes())) if path.suffix == ".py" else ():
            match node:
                case ast.ClassDef(name=name, body=body):
                    known |= {name, *declared_in(body)}
                case ast.FunctionDef(name=name) | ast.arg(arg=name):
                    known.add(name)
                case ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(attr=name, ctx=ast.Store()):
                    known.add(name)
    return known


def declared_in(body):
    """What a class gives a name to, such as its states."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def here(document):
    """The text without what is fenced, without lists of tests and, of a table that compares, without the original."""
    lines = [line for line in FENCED.sub("", read(document)).splitlines() if not golden_cases.TEST.match(line)]
    if document.startswith("docs/coming-from/"):
        lines = ["|".join(line.split("|")[2:]) if line.startswith("|") else line for line in lines]
    return "\n".join(lines)


def names_in(text):
    for code in CODE.findall(text):
        yield from (part for part in code.removesuffix("()").split(".") if OURS.fullmatch(part))


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if not document.startswith("benchmarks/")])
def test_every_name_is_there(document):
    assert sorted(set(names_in(here(document))) - ours() - NOT_HERE) == []


def test_the_golden_cases_list_exactly_the_tests_that_are_marked_with_them():
    assert golden_cases.listed(read("docs/golden-cases.md")) == golden_cases.cited(TESTS)


def test_every_golden_case_has_a_test():
    cases = golden_cases.listed(read("docs/golden-cases.md"))
    assert {"G1", "G12", "P-01", "P-17"} <= set(cases)
    assert [case for case, holders in cases.items() if not any(holders.values())] == []


def test_every_golden_case_has_a_test_that_every_change_runs():
    left = {
        case: [name for path, names in files.items() for name in {*names} - golden_cases.only_nightly(TESTS / path)]
        for case, files in golden_cases.listed(read("docs/golden-cases.md")).items()
    }
    assert [case for case, names in left.items() if not names] == []


def promises():
    """What the table of promises says: each promise, and the tests that hold it."""
    rows = read("docs/reliability.md").partition("| Promise | Held by |")[2].partition("\n\n")[0].splitlines()[2:]
    return {row.split("|")[1].strip(): CODE.findall(row.split("|")[2]) for row in rows}


def test_every_promise_is_held_by_tests_that_every_change_runs():
    assert len(promises()) == 7
    for promise, tests in promises().items():
        assert tests, promise
        for path, _, name in (test.partition("::") for test in tests):
            *classes, function = name.split("::")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert all(f"class {each}:" in text for each in classes), name
            assert f"def {function}(" in text, name
            assert name not in golden_cases.only_nightly(ROOT / path), promise


def test_a_test_that_only_the_night_runs_is_found(tmp_path):
    path = tmp_path / "test_a.py"
    path.write_text(
        "@pytest.mark.nightly\n"
        "def test_long(): ...\n"
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.nightly)])\n"
        "def test_partly(n): ...\n"
        "@pytest.mark.nightly\n"
        "class TestLong:\n"
        "    def test_one(self): ...\n"
    )
    assert golden_cases.only_nightly(path) == {"test_long", "TestLong", "TestLong::test_one"}
    path.write_text("pytestmark = [pytest.mark.nightly, pytest.mark.spark]\ndef test_a(): ...\n")
    assert golden_cases.only_nightly(path) == {"test_a"}


def test_what_is_said_not_to_be_here_is_not():
    assert NOT_HERE & ours() == set()
    assert set(names_in(read("docs/coming-from/storm.md").partition("## Not here")[2])) >= NOT_HERE


def test_a_name_that_is_not_there_is_found():
    assert set(names_in("`NoSuchBolt` and `run.no_such_method()`, `run_bolt`, `FINE`, `a b`")) - ours() == {
        "NoSuchBolt",
        "no_such_method",
    }


def paths_in(text):
    """What looks like a file of source or a folder; a run-time folder such as `.txbatch` has no slash."""
    return [code for code in CODE.findall(text) if MODULE.fullmatch(code) or FOLDER.fullmatch(code)]


def is_there(document, path):
    """Whether a path exists from the root or from the document's folder; a bare file name may be any module's."""
    found = (ROOT / path).exists() or (ROOT / document).parent.joinpath(path).exists()
    return found or ("/" not in path and path.removesuffix(".py").removesuffix(".lua") in ours())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_is_there(document):
    paths = paths_in(FENCED.sub("", read(document)))
    assert [path for path in paths if not is_there(document, path)] == []


ROOM_SIGNS = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py"))
WORD = re.compile(r"[a-z]+(_[a-z]+)+")


@pytest.mark.parametrize("sign", ROOM_SIGNS, ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_the_sign_of_a_room_names_what_is_there(sign):
    modules = {path.stem for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    modules |= {path.parent.name for path in ROOM_SIGNS}
    named = CODE.findall(ast.get_docstring(ast.parse(sign.read_text(encoding="utf-8"))) or "")
    assert [name for name in named if WORD.fullmatch(name) and name not in modules | ours()] == []
    room = sign.parent.relative_to(ROOT).as_posix()
    assert [path for path in paths_in(" ".join(f"`{name}`" for name in named)) if not is_there(f"{room}/x", path)] == []


def test_a_path_that_is_not_there_is_found():
    paths = paths_in("`state/gone.py`, `state/attempt.py`, `no/such/room/`, `no_such.py`, `wave.py`, `a/b`, `*.py`")
    missing = [path for path in paths if not is_there("README.md", path)]
    assert missing == ["state/gone.py", "no/such/room/", "no_such.py"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document):
    here_ = ROOT / document
    prose = re.sub(r"`[^`\n]+`", "code", FENCED.sub("", read(document)))
    links = [(target, name) for target, name in LINK.findall(prose) if "://" not in target]
    leads = [(here_.parent / target if target else here_, name) for target, name in links]
    assert [path for path, _ in leads if not path.exists()] == []
    assert [(path, name) for path, name in leads if name and path.suffix == ".md" and name not in anchors(path)] == []


def test_the_tour_names_every_room_of_a_package():
    rooms = {path.parent.name for package in PACKAGES for path in (ROOT / package).glob("*/__init__.py")}
    tree = FENCED.findall(read("docs/architecture.md"))[0]
    named = set(re.findall(r"(\w+)/", tree))
    assert rooms - named == set()


def test_the_tour_takes_ten_minutes():
    assert len(read("docs/architecture.md").split()) <= 2_500
