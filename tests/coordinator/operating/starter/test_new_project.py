"""A new project runs, passes its own tests and every check it brings, whatever it is called."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator import LocalCluster
from coordinator.operating.cli.loading import load_factory, make_topology
from coordinator.operating.starter import new_project
from coordinator.operating.starter.new_project import (
    CACHES,
    HIDDEN,
    LENGTH_MAX,
    VARIANTS,
    check_project_name,
    installed_at,
    template_files,
    write_project,
)
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError
from tests.support.approved import approved, refusals

ROOT = Path(__file__).resolve().parents[4]
LONGEST = "long" + "_" * (LENGTH_MAX - 4)
FILES = [".gitignore", "README.md", "data/visits.jsonl", "pyproject.toml", "shop/__init__.py", "shop/topology.py"]
FILES += ["tests/test_topology.py"]
EVERY_VARIANT = pytest.mark.parametrize("variant", ["", *VARIANTS])


def run_in(folder: Path, *arguments: str) -> str:
    """Runs a tool of this environment as the user would, and returns what it says."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_has_the_users_name_everywhere(tmp_path: Path) -> None:
    assert [path.as_posix() for path in write_project("shop", tmp_path)] == FILES
    written = sorted(path for path in (tmp_path / "shop").rglob("*") if path.is_file())
    assert [path.relative_to(tmp_path / "shop").as_posix() for path in written] == FILES
    assert [path for path in written if new_project.TEMPLATE_NAME in path.read_text(encoding="utf-8")] == []
    write_project("kept", tmp_path, "classes")
    assert {"kept/bolts.py", "tests/test_bolts.py"} <= {
        path.relative_to(tmp_path / "kept").as_posix() for path in (tmp_path / "kept").rglob("*")
    }
    project = tomllib.loads((tmp_path / "shop" / "pyproject.toml").read_text(encoding="utf-8"))
    assert (project["project"]["name"], project["tool"]["setuptools"]["packages"]) == ("shop", ["shop"])


@pytest.mark.often("")
@EVERY_VARIANT
def test_a_project_passes_its_own_tests(tmp_path: Path, variant: str) -> None:
    write_project("shop", tmp_path, variant)
    said = run_in(tmp_path / "shop", "pytest", "-q", "-p", "no:valkey", "-p", "no:cacheprovider")
    assert ("12 passed" if variant == "classes" else "9 passed") in said


@EVERY_VARIANT
@pytest.mark.parametrize("name", ["shop", LONGEST])
def test_a_project_passes_ruff_whatever_its_name(name: str, tmp_path: Path, variant: str) -> None:
    write_project(name, tmp_path, variant)
    assert run_in(tmp_path / name, "ruff", "check", "--no-cache") == "All checks passed!\n"
    assert "already formatted" in run_in(tmp_path / name, "ruff", "format", "--check", "--no-cache")


@pytest.mark.nightly
@EVERY_VARIANT
def test_a_project_passes_strict_mypy_where_txbatch_is_installed(tmp_path: Path, variant: str) -> None:
    """In a virtual environment that has the packages on its path, as an installation would."""
    venv.create(tmp_path / "env", with_pip=False)
    (installed,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    (installed / "installed.pth").write_text(f"{ROOT}\n{Path(pytest.__file__).parent.parent}\n")
    write_project("shop", tmp_path, variant)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", str(tmp_path / "env" / "bin" / "python")],
        cwd=tmp_path / "shop",
        capture_output=True,
        text=True,
        check=False,
    )
    count = 5 if variant == "classes" else 3
    assert done.stdout.startswith(f"Success: no issues found in {count} source files"), done.stdout + done.stderr


@pytest.mark.parametrize("variant", ["", "classes", "csv"])
def test_the_sample_data_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    name = f"sampled_{variant}"
    write_project(name, tmp_path, variant)
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    factory, _ = load_factory(f"{name}.topology:topology")
    topology = make_topology(factory, "topology", {})
    assert isinstance(topology, Topology)
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(topology)
        run.run_until_idle()
        assert run.statistics.committed == 12
        assert sum(run.state("visits").values()) == 298
        assert len(run.dead_letters()) == 2


@pytest.mark.parametrize("mine", ["shop", "shop/README.md"], ids=["a file in its place", "a folder"])
def test_what_exists_is_not_touched(tmp_path: Path, mine: str) -> None:
    (tmp_path / mine).parent.mkdir(exist_ok=True)
    (tmp_path / mine).write_text("mine")
    with pytest.raises(TopologyError, match="exists already, and nothing in it was changed"):
        write_project("shop", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / mine]
    assert (tmp_path / mine).read_text() == "mine"


def test_half_a_project_is_removed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, full = new_project._copied, OSError(28, "no space left on device")

    def copied_until_the_disk_is_full(within: str, *more: Any) -> Path:
        if within.endswith("topology.py"):
            raise full
        return copied(within, *more)

    monkeypatch.setattr(new_project, "_copied", copied_until_the_disk_is_full)
    with pytest.raises(OSError, match="no space left"):
        write_project("shop", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_tools_leave_in_the_template_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in sorted(CACHES):
        (tmp_path / "template" / folder).mkdir(parents=True)
        (tmp_path / "template" / folder / "left.py").write_text("")
    (tmp_path / "template" / "README.md").write_text("# myproject\n")
    monkeypatch.setattr(new_project, "TEMPLATE", tmp_path / "template")
    assert [*template_files()] == ["README.md"]


def test_the_template_has_no_hidden_files_that_a_wheel_would_leave_out() -> None:
    names = {name for variant in ("", *VARIANTS) for name in template_files(variant)}
    assert HIDDEN.keys() <= names
    assert [name for name in names if any(part.startswith(".") for part in name.split("/"))] == []


def test_a_package_is_found_where_it_is_installed() -> None:
    assert str(installed_at("redis")).endswith("/redis/__init__.py")
    assert installed_at("no_such_package_anywhere") is None
    with pytest.raises(TopologyError, match=r"'redis' is taken: .*/redis/__init__\.py is installed"):
        check_project_name("redis")


@pytest.mark.parametrize("name", ["visits", "my_shop", "a", "word2vec", "x" * LENGTH_MAX])
def test_a_package_name_is_taken(name: str) -> None:
    check_project_name(name)


REFUSED = [
    *("", ".", "../up", "My-Shop", "2visits", "_private", "visits ", "vis\nits", "größe", "x" * (LENGTH_MAX + 1)),
    *("state", "coordinated_bolt", "txbatch", "tests", "data", "class", "json"),
]


def test_any_other_name_is_refused_with_the_reason() -> None:
    cases = {repr(name): partial(check_project_name, name) for name in REFUSED}
    approved(refusals(cases, TopologyError), "project-names")
