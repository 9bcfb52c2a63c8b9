"""A package hands its names on when they are asked for, and as plain imports would."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from types import FunctionType, ModuleType

import pytest

PACKAGES = ["state", "coordinated_bolt", "committers", "coordinator", "coordinator.sources"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_exported_name_is_there_listed_and_the_object_of_its_module(name: str) -> None:
    package = importlib.import_module(name)
    for exported in package.__all__:
        found = getattr(package, exported)
        assert exported in dir(package)
        assert not isinstance(found, ModuleType), "a submodule of that name hides it"
        defined_in = getattr(found, "__module__", None)
        if isinstance(found, (type, FunctionType)) and defined_in:
            assert getattr(sys.modules[defined_in], exported) is found


def test_a_name_that_is_not_exported_is_refused_as_ever() -> None:
    with pytest.raises(AttributeError, match="module 'state' has no attribute 'nothing'"):
        importlib.import_module("state").nothing  # noqa: B018


def test_a_package_is_pickled_by_its_name_as_other_modules_are_by_spark() -> None:
    package = importlib.import_module("coordinator")
    assert pickle.loads(pickle.dumps(package)) is package


@pytest.mark.parametrize(
    "before",
    ["", "import coordinator.run", "import coordinator.start as s", "from coordinator.operating.cli.app import app"],
)
def test_a_submodule_imported_first_does_not_hide_the_function_of_its_name(before: str) -> None:
    program = f"{before}\nfrom coordinator import run, start\nprint(run.__name__, start.__name__, callable(run))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "run start True\n", done.stderr
