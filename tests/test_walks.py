"""Four ways through the code, each as the modules whose functions run: they may get shorter, not longer.

The reading list of docs/architecture.md is held against what really runs, so it can neither lie nor fall behind.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import pytest

from benchmarks.task_counts import with_tasks
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinator.operating.cli.entry import main
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.engine import LateEngine
from examples.word_count import CountWords, topology
from state.errors import EngineError
from state.kinds.hash_state import HashState
from state.redis_client.connection import RedisConnection
from tests.architecture import ring_of
from tests.support.runs.whole_runs import run
from tests.support.stores.memory_store import MemoryStore

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
LONGEST = {"coordinator": 49, "elsewhere": 50}
"""Modules that run from cut to committed: a transaction of text files, by the stages of Spark, in this process."""
LONGEST_INCREMENT = 17
"""Modules of `state` and `committers` that run from a committer's first `increment` to the call that carries it."""
LONGEST_TUPLE = 20
"""Modules of `coordinated_bolt` that run from the first tuple a spout emits to `finish_batch` of the bolt behind it."""
LONGEST_START = 146
"""Modules that run from `txbatch run` to its first wave: command, topology, plan, server, takeover, start of Spark."""
PAGE_WORDS = 1_200
"""Words of the page that describes rings and rooms."""
READ = {"coordinator": 30, "elsewhere": 12}
"""Modules one reads to follow it; what else runs is what these names say."""


class Walk:
    """Collects the modules of ours whose functions are called."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # and not a module or class that is imported
        if event == "call" and is_function and name.startswith(f"{ROOT}/"):
            module = name.removeprefix(f"{ROOT}/")
            if module.startswith(PACKAGES):
                self.modules[module] = None

    def between(self, first: tuple[Any, str], last: tuple[Any, str]) -> ExitStack:
        """Walks once, in the block: from the first call of one method to the next call of another."""
        stack = ExitStack()
        begin, end = (getattr(owner, name) for owner, name in (first, last))

        def begins(*arguments: Any, **more: Any) -> Any:
            if not self.modules:
                sys.setprofile(self)
            return begin(*arguments, **more)

        def ends(*arguments: Any, **more: Any) -> Any:
            if self.modules:
                sys.setprofile(None)
            return end(*arguments, **more)

        stack.enter_context(mock.patch.object(*first, begins))
        stack.enter_context(mock.patch.object(*last, ends))
        stack.callback(sys.setprofile, sys.getprofile())
        return stack

    def of(self, *packages: str) -> list[str]:
        """Returns the modules of some packages."""
        return sorted(module for module in self.modules if module.startswith(packages))

    def taken(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is walked through when it is called."""

        def walked(*arguments: Any, **more: Any) -> Any:
            before = sys.getprofile()
            sys.setprofile(self)
            try:
                return call(*arguments, **more)
            finally:
                sys.setprofile(before)

        return walked


def words(folder: Path) -> Topology:
    """Four transactions of text, which two tasks of each component share."""
    (folder / "lines.txt").write_text("to be or not to be\n" * 40)
    return with_tasks(topology(str(folder / "*.txt"), lines_per_batch=10), 2)


def of_a_transaction(folder: Path) -> list[str]:
    """The modules that run between the first turn of a run and its last commit, but for what stands in for Spark."""
    walk = Walk()
    with mock.patch.object(Coordinator, "run", walk.taken(Coordinator.run)):
        coordinator = run(words(folder), MemoryStore())
    assert coordinator.statistics.committed == 4
    in_process = tuple(f"coordinator/engines/waves/{name}.py" for name in ("process_engine", "task_stages"))
    stands_in = ("coordinator/testing/simulated/", *in_process)
    return [module for module in walk.modules if not module.startswith(stands_in)]


def assert_no_longer(modules: list[str], most: int) -> None:
    assert len(modules) <= most, "\n".join([str(len(modules)), *modules])


def test_the_way_of_an_increment_gets_no_longer(tmp_path: Path) -> None:
    walk = Walk()
    with LocalCluster() as cluster, walk.between((HashState, "increment_many"), (RedisConnection, "function")):
        cluster.submit(words(tmp_path)).run_until_idle()
    assert_no_longer(walk.of("state", "committers"), LONGEST_INCREMENT)


def test_the_way_of_a_tuple_gets_no_longer(tmp_path: Path) -> None:
    walk = Walk()
    with LocalCluster() as cluster, walk.between((AttemptCollector, "emit"), (CountWords, "finish_batch")):
        cluster.submit(words(tmp_path)).run_until_idle()
    assert_no_longer(walk.of("coordinated_bolt"), LONGEST_TUPLE)


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
def test_the_way_of_the_command_to_its_first_wave_gets_no_longer(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("to be or not to be\n")
    for module in (ROOT / "coordinator").rglob("*.py"):  # what runs while a module is imported is no part of a walk
        with suppress(ImportError):  # an extra that is not installed
            import_module(".".join(module.relative_to(ROOT).with_suffix("").parts))
    walk = Walk()
    command = ["run", f"{ROOT}/examples/word_count.py:topology", "-p", f"input={tmp_path}/*.txt"]
    with mock.patch.object(LateEngine, "process", side_effect=EngineError("the first wave")), pytest.raises(SystemExit):
        walk.taken(main)([*command, "--data-dir", str(tmp_path / "data")])
    assert_no_longer(walk.of(*PACKAGES), LONGEST_START)


def reading_list() -> list[str]:
    """The modules that the first section of the tour names, in its order."""
    opening = ARCHITECTURE.read_text(encoding="utf-8").split("\n## ")[1]
    return re.findall(r"`([\w/]+\.py)`", opening)


def sizes(modules: list[str]) -> dict[str, int]:
    mine = sum(module.startswith("coordinator/") for module in modules)
    return {"coordinator": mine, "elsewhere": len(modules) - mine}


def test_the_way_of_a_transaction_gets_no_longer(tmp_path: Path) -> None:
    modules = of_a_transaction(tmp_path)
    found = sizes(modules)
    assert all(found[where] <= most for where, most in LONGEST.items()), "\n".join([str(found), *sorted(modules)])


def test_the_reading_list_is_short_and_every_module_of_it_runs(tmp_path: Path) -> None:
    listed, found = reading_list(), sizes(reading_list())
    assert len(listed) > 20
    assert len(ARCHITECTURE.read_text(encoding="utf-8").split()) <= PAGE_WORDS
    assert all(found[where] <= most for where, most in READ.items()), found
    assert len(set(listed)) == len(listed)
    runs = {*of_a_transaction(tmp_path), *ONLY_ON_SPARK}
    known = runs | imported_by(runs)
    assert [module for module in listed if module not in known] == []


def imported_by(modules: set[str]) -> set[str]:
    """What these modules import: plain data has no function that could run."""
    trees = [ast.parse((ROOT / module).read_bytes()) for module in modules]
    names = (node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {f"{name.replace('.', '/')}.py" for name in names if name is not None}


ONLY_ON_SPARK = {f"coordinator/engines/spark/{name}.py" for name in ("spark_engine", "frame_jobs")}
"""What submits the same stages as Spark jobs."""


KERNEL = ROOT / "docs" / "kernel.md"
CITED = re.compile(
    r"^\*\*`([\w/]+\.(?:py|lua))`\*\*.*?^Test: `(tests/[\w/]+\.py)::([\w:]+)`$", re.MULTILINE | re.DOTALL
)
"""A paragraph of the hour: the module, and the test that fails if what it promises changes."""
MACHINE_NEEDS = 60
"""Modules that the run machine imports, directly or not, itself included."""
KERNEL_LINES = 2_800
KERNEL_NEEDS = 45
"""Modules that those of the hour import, apart from one another."""


def test_the_hour_is_an_hour_of_the_kernel_and_names_tests_that_exist(tmp_path: Path) -> None:
    cited = CITED.findall(KERNEL.read_text(encoding="utf-8"))
    modules = [module for module, _, _ in cited]
    in_python = [module for module in modules if module.endswith(".py")]
    assert (len(in_python), len(modules)) == (15, 18)
    assert {ring_of(module.removesuffix(".py")) for module in in_python} == {"kernel"}
    assert sum(map(code_lines, modules)) <= KERNEL_LINES
    runs = {*of_a_transaction(tmp_path)}
    known = runs | imported_by(runs)
    assert [module for module in in_python if module not in known] == []
    for _, path, name in cited:
        assert f"def {name.rpartition('::')[2]}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_the_hour_needs_little_else() -> None:
    modules = {module for module, _, _ in CITED.findall(KERNEL.read_text(encoding="utf-8")) if module.endswith(".py")}
    needed = {module for module in imported_by(modules) - modules if (ROOT / module).is_file()}
    assert len(needed) <= KERNEL_NEEDS, sorted(needed)


def code_lines(module: str) -> int:
    """Lines that are neither blank nor a comment nor a docstring."""
    text = (ROOT / module).read_text(encoding="utf-8")
    if module.endswith(".lua"):
        text, comment = re.sub(r"--\[\[.*?--\]\]", "", text, flags=re.DOTALL), "--"
        said = set[int]()
    else:
        strings = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr) and is_text(node.value)]
        said = {line for node in strings for line in range(node.lineno, (node.end_lineno or 0) + 1)}
        comment = "#"
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return sum(bool(line) and not line.startswith(comment) and number not in said for number, line in lines)


def is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def test_the_machine_needs_little_of_the_house() -> None:
    needed, todo = set[str](), ["coordinator/transactional/machine/run_machine.py"]
    while todo:
        module = todo.pop()
        if module not in needed:
            needed.add(module)
            todo += [each for each in imported_at_once_by(module) if (ROOT / each).is_file()]
    assert len(needed) <= MACHINE_NEEDS, "\n".join([str(len(needed)), *sorted(needed)])


def imported_at_once_by(module: str) -> list[str]:
    """What a module imports when it is imported, type checkers and functions left out."""
    body = ast.parse((ROOT / module).read_bytes()).body
    names = [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module]
    return [f"{name.replace('.', '/')}.py" for name in names]
