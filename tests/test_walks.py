"""The way of one transaction through the code, as the modules whose functions run: it may get shorter, not longer.

The reading list of docs/architecture.md is held against what really runs, so it can neither lie nor fall behind.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from coordinator.transactional.coordinator import Coordinator
from examples.word_count import topology
from tests.support.runs.whole_runs import run
from tests.support.stores.memory_store import MemoryStore

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
LONGEST = {"coordinator": 55, "elsewhere": 56}
"""Modules that run from cut to committed: a transaction of text files, by the stages of Spark, in this process."""
READ = {"coordinator": 30, "elsewhere": 12}
"""Modules one reads to follow it; what else runs is what these names say."""


class Walk:
    """Collects the modules of ours whose functions are called."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{ROOT}/"):
            module = name.removeprefix(f"{ROOT}/")
            if module.startswith(PACKAGES):
                self.modules[module] = None

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


def of_a_transaction(folder: Path) -> list[str]:
    """The modules that run between the first turn of a run and its last commit."""
    (folder / "lines.txt").write_text("to be or not to be\n" * 40)
    walk = Walk()
    with mock.patch.object(Coordinator, "run", walk.taken(Coordinator.run)):
        coordinator = run(topology(str(folder / "*.txt"), lines_per_batch=10), MemoryStore())
    assert coordinator.statistics.committed == 4
    return list(walk.modules)


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
    assert all(found[where] <= most for where, most in READ.items()), found
    assert len(set(listed)) == len(listed)
    runs = {*of_a_transaction(tmp_path), *ONLY_ON_SPARK}
    assert [module for module in listed if module not in runs | imported_by(runs)] == []


def imported_by(modules: set[str]) -> set[str]:
    """What these modules import: plain data has no function that could run."""
    trees = [ast.parse((ROOT / module).read_bytes()) for module in modules]
    names = (node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {f"{name.replace('.', '/')}.py" for name in names if name is not None}


ONLY_ON_SPARK = {f"coordinator/engines/spark/{name}.py" for name in ("spark_engine", "wave", "frame_jobs")}
"""What submits the same stages as Spark jobs."""
