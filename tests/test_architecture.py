"""The house rules hold on this checkout, and each check is seen to fail where its rule is broken."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import PACKAGES, PURE_MODULES, RULES

ROOT = Path(__file__).resolve().parent.parent

Rule = Callable[[Path], list[str]]

CLEAN_TREE = {
    **{f"{package}/__init__.py": '"""A package."""\n' for package in PACKAGES},
    "state/redis_owner/store.py": '"""Redis."""\nimport redis\n',
    "state/codec.py": '"""Bytes."""\nimport msgpack\n',
    "committers/__init__.py": '"""Hands on."""\nfrom state.codec import B, a\n\n__all__ = ["B", "a"]\n',
    "coordinator/__init__.py": '"""Guarded."""\nfrom state import a, b\nrequire_own_packages("x")\n',
    "coordinated_bolt/__init__.py": '"""Guarded."""\nfrom a import b\nrequire_own_packages()\n',
    "coordinator/operating/cli/__init__.py": '"""Speaks."""\n',
    "coordinator/operating/cli/terminal.py": '"""Speaks."""\nimport typer\nprint(typer)\n',
    "coordinator/engines/spark/session.py": '"""Spark."""\nimport time\nfrom pyspark import sql\n',
    "coordinated_bolt/streams/groupings.py": '"""Seeded."""\nimport random\nrandom.Random(7).sample([1], 1)\n',
    "coordinated_bolt/batches/task.py": '"""Runs."""\nfrom coordinated_bolt.streams import groupings\n',
    "coordinated_bolt/trees/root.py": '"""Roots."""\nfrom coordinated_bolt.batches.task import T\n',
    **{f"committers/deep/a{number}.py": '"""One of many."""\n' for number in range(20)},
    "examples/word_count.py": '"""An example."""\nimport coordinator\n',
    "tests/coordinated_bolt/streams/test_groupings.py": '"""Tests."""\n',
    "tests/test_keys.py": '"""Tests."""\nfrom tests.support.stores.builders import test_store\n',
    "tests/test_codec.py": '"""Tests."""\n'
    "import state, coordinator, examples, benchmarks\n"
    "assert a == b or c == d, f'{a} differs'\nassert a is None or a.holds()\nassert a and b == c\n",
}

BROKEN: list[tuple[Rule, str, str]] = [
    (architecture.wrong_way_imports, "state/a.py", "import coordinated_bolt.streams.tuples"),
    (architecture.wrong_way_imports, "coordinated_bolt/a.py", "from committers import committer"),
    (
        architecture.wrong_way_imports,
        "committers/a.py",
        "def late():\n    from coordinator.topology.planning.plan import Plan",
    ),
    (
        architecture.wrong_way_imports,
        "committers/a.py",
        "import importlib\nimportlib.import_module('coordinator')",
    ),
    (architecture.wrong_way_imports, "coordinator/a.py", "from tests.conftest import backend"),
    (architecture.wrong_way_imports, "coordinator/operating/cli/a.py", "import examples.word_count"),
    (architecture.wrong_way_imports, "examples/a.py", "import benchmarks"),
    (architecture.outward_imports, "state/redis_owner/a.py", "def late():\n    from state.redis_admin import drop"),
    (architecture.outward_imports, "coordinator/watching/a.py", "from coordinator.plain.plain_plan import PlainPlan"),
    (architecture.outward_imports, "coordinator/sources/a.py", "from coordinator.operating import cli"),
    (architecture.outward_imports, "coordinator/plain/a.py", "import coordinator.run"),
    (
        architecture.outward_imports,
        "coordinator/topology/building/a.py",
        "if TYPE_CHECKING:\n    from coordinator.topology.pictures.picture_maker import picture_of",
    ),
    (architecture.circles, "coordinated_bolt/streams/a.py", "import coordinated_bolt.batches.task"),
    (architecture.circles, "coordinated_bolt/streams/a.py", "from coordinated_bolt.trees import root"),
    (
        architecture.circles_of_modules,
        "coordinated_bolt/streams/groupings.py",
        "def late():\n    from coordinated_bolt.batches.task import T",
    ),
    (
        architecture.circles_of_modules,
        "coordinated_bolt/streams/groupings.py",
        "if TYPE_CHECKING:\n    from coordinated_bolt.batches.task import T",
    ),
    (
        architecture.circles_of_modules,
        "coordinated_bolt/batches/__init__.py",
        '"""Hands on at once."""\nfrom coordinated_bolt.trees.root import T\n',
    ),
    (architecture.crowded_rooms, "committers/deep/one_more.py", ""),
    (architecture.names_twice, "state/a/codec.py", '"""Bytes again."""'),
    (
        architecture.names_twice,
        "committers/b.py",
        "class Twice:\n    pass\n\n\ndef f():\n    class Twice:\n        pass",
    ),
    (architecture.names_twice, "coordinator/operating/cli/commands/b.py", "class A:\n    class A:\n        pass"),
    (architecture.ungated_libraries, "state/store.py", "import redis"),
    (architecture.ungated_libraries, "coordinator/a.py", "from redis.exceptions import RedisError"),
    (architecture.ungated_libraries, "coordinator/sparkle.py", "import pyspark"),
    (architecture.ungated_libraries, "coordinated_bolt/a.py", "from pyspark import cloudpickle"),
    (architecture.ungated_libraries, "coordinated_bolt/transport/frames.py", "import msgpack"),
    (architecture.ungated_libraries, "coordinator/engines/spark/a.py", "from rich.progress import Progress"),
    (architecture.ungated_libraries, "coordinator/sources/files.py", "import confluent_kafka"),
    (architecture.ungated_libraries, "state/redis_server/fake.py", "import fakeredis"),
    (architecture.overlong, "state/a.py", "def long():\n" + "    pass\n" * 70),
    (architecture.overlong, "state/a.py", "a = 1\n" * 451),
    (architecture.overlong, "state/a.lua", "local a = 1\n" * 451),
    (architecture.overlong, "state/a.lua", "local function long()\n" + "  call()\n" * 69 + "end\n"),
    (architecture.busy_inits, "state/__init__.py", '"""A package."""\nVERSION = 1\n'),
    (architecture.busy_inits, "state/__init__.py", '"""A package."""\ndef helper():\n    pass\n'),
    (
        architecture.busy_inits,
        "state/__init__.py",
        '"""Unsorted."""\nfrom a import b, c\n__all__ = ["c", "b"]\n',
    ),
    (architecture.busy_inits, "state/__init__.py", '"""A package."""\nfrom a import b\n__all__ = ["c"]\n'),
    (architecture.busy_inits, "state/__init__.py", '"""A package."""\nrequire_own_packages("x")\n'),
    (architecture.busy_inits, "coordinator/engines/spark/__init__.py", '"""A package."""\nconnect("x")\n'),
    (architecture.busy_inits, "committers/__init__.py", '"""Twice."""\n' + "require_own_packages()\n" * 2),
    (architecture.unfinished, "state/a.py", "# TO" + "DO: later"),
    (architecture.unfinished, "state/functions.lua", "-- FIX" + "ME"),
    (architecture.undocumented_modules, "coordinator/engines/spark/a.py", "import os"),
    (architecture.undocumented_modules, "tests/support/a.py", "import os"),
    (architecture.prints, "coordinator/a.py", "def f():\n    print(1)"),
    (architecture.prints, "coordinator/operating/cli/commands/a.py", "def f():\n    print(1)"),
    (architecture.prints, "coordinator/operating/cli/a.py", "import typer\ntyper.echo(1)"),
    (architecture.prints, "coordinator/operating/cli/a.py", "import sys\nsys.stdout.buffer.write(b'')"),
    (architecture.prints, "coordinator/operating/cli/a.py", "import sys\nwrite = sys.stderr.write"),
    (architecture.prints, "coordinator/operating/cli/a.py", "import json\nsay(json.dumps({}))"),
    (architecture.prints, "coordinator/operating/cli/a.py", "from rich.console import Console\nConsole()"),
    (architecture.impurities, "state/attempt.py", "import time"),
    (architecture.impurities, "state/keys.py", "from uuid import uuid4"),
    (architecture.impurities, "coordinated_bolt/deep/a.py", "from datetime import datetime\ndatetime.now()"),
    (architecture.impurities, "coordinated_bolt/a.py", "import datetime\nclock = datetime.datetime.now"),
    (architecture.impurities, "coordinated_bolt/a.py", "import random\nrandom.shuffle([1])"),
    (architecture.impurities, "coordinated_bolt/a.py", "from random import choice"),
    (architecture.impurities, "coordinated_bolt/a.py", "import random\nrandom.Random().random()"),
    (architecture.impurities, "coordinated_bolt/a.py", "def task(value, n):\n    return hash(value) % n"),
    (architecture.impurities, "coordinator/transactional/machine/run_machine.py", "import time"),
    (architecture.impurities, "coordinator/topology/planning/plan.py", "from os import urandom"),
    (architecture.impurities, "committers/group_commit.py", "def f():\n    return open('x')"),
    (architecture.impurities, "coordinated_bolt/time_cache_map.py", "from threading import Lock\nimport queue"),
    (architecture.unlisted_claims, "coordinator/spouts/a.py", '"""Cuts. Pure."""'),
    (
        architecture.unlisted_claims,
        "coordinator/transactional/start/__init__.py",
        '"""Pure functions of a batch."""',
    ),
    (architecture.shadowed_standard_library, "queue/__init__.py", ""),
    (architecture.shadowed_standard_library, "secrets.py", ""),
    (architecture.idle_checks, "tests/test_a.py", "assert run() == [1] or run.log"),
    (architecture.idle_checks, "tests/test_a.py", "def test_a():\n    assert a.b or c == d"),
    (architecture.idle_checks, "tests/deep/test_a.py", 'assert (a == b, "they differ")'),
    (architecture.idle_checks, "tests/test_a.py", "assert (x > 1 for x in found)"),
    (architecture.idle_checks, "tests/test_a.py", "assert a, b == c"),
    (architecture.idle_checks, "tests/support.py", "def check(a, b):\n    a == b"),
    (architecture.idle_checks, "tests/support.py", "a in b or c"),
    (architecture.idle_checks, "tests/support.py", "not a"),
    (architecture.unmirrored_rooms, "tests/coordinated_bolt/rooms/test_a.py", '"""Tests."""'),
    (architecture.tests_that_import_tests, "tests/test_b.py", "from tests.deep.test_a import Helper"),
]


# Their complaints name a room, not one file in it.
ABOUT_ROOMS = (
    architecture.circles,
    architecture.circles_of_modules,
    architecture.crowded_rooms,
    architecture.unmirrored_rooms,
)


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_collected() -> Iterator[None]:
    """The trees of all files are kept until the end: to look for garbage in them takes as long as the rules do."""
    gc.disable()
    yield
    gc.enable()


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_checkout_keeps_the_rule(rule: Rule) -> None:
    complaints = rule(ROOT)

    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_clean_tree_keeps_the_rule(rule: Rule, tmp_path: Path) -> None:
    assert rule(write_tree(tmp_path, CLEAN_TREE)) == []


@pytest.mark.parametrize(("rule", "name", "text"), BROKEN, ids=lambda part: getattr(part, "__name__", None))
def test_a_planted_violation_is_found(rule: Rule, name: str, text: str, tmp_path: Path) -> None:
    complaints = rule(write_tree(tmp_path, {**CLEAN_TREE, name: text}))

    assert len(complaints) == 1
    if rule in ABOUT_ROOMS:
        assert str(Path(name).parent) in complaints[0]
    else:
        assert complaints[0].startswith(name.partition("/__init__")[0].removesuffix(".py"))


def test_every_rule_has_been_seen_to_fail() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


@pytest.mark.parametrize("module", [*PURE_MODULES, *architecture.EXEMPT])
def test_every_pure_module_exists(module: str) -> None:
    assert (ROOT / f"{module}.py").is_file() or (ROOT / module / "__init__.py").is_file()


def test_no_pure_module_is_named_twice() -> None:
    assert len(set(PURE_MODULES)) == len(PURE_MODULES)
    assert [module for module in PURE_MODULES if str(Path(module).parent) in PURE_MODULES] == []


def test_every_exemption_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = dict(architecture.EXEMPT)
    monkeypatch.setattr(architecture, "EXEMPT", {})
    complaints = architecture.impurities(ROOT)

    assert {complaint.split(".py:")[0] for complaint in complaints} == set(needed)
    for module, libraries in needed.items():
        imported = {complaint.split(" imports ")[1] for complaint in complaints if complaint.startswith(f"{module}.py")}
        assert {name.split(".")[0] for name in imported} == libraries
