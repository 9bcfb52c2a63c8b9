"""What is shipped runs from an archive, and its tracebacks show the file its author knows."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from coordinator.engines.spark.shipping import ship_code
from state.redis_client.function_library import library_code

SOURCE = """\
def work():
    raise ValueError("as written by the user")
"""


class Context:
    """Takes an archive as Spark does."""

    def __init__(self, folder: Path) -> None:
        self._temp_dir = str(folder)
        self.added: list[Path] = []

    @property
    def archive(self) -> Path:
        return self.added[-1]

    @property
    def listFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        return [f"spark://driver/files/{path.name}" for path in self.added]

    def addFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.added.append(Path(path))


MODULES = ["one_module_of_ada", "package_of_ada", "package_of_ada.inner", "space_of_ada.m"]


def forget_modules() -> None:
    """Has the next import look for the modules again."""
    for name in [name for name in sys.modules if "of_ada" in name]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder, with a module, a package and a namespace package that are imported from it."""
    folder = tmp_path / "jobs"
    for name in ("one_module_of_ada.py", "package_of_ada/__init__.py", "package_of_ada/inner.py", "space_of_ada/m.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    yield folder
    forget_modules()


@pytest.mark.parametrize("name", MODULES)
def test_a_traceback_shows_the_users_own_file_and_line(
    name: str, author: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path(str(importlib.import_module(name).__file__))
    context: Any = Context(tmp_path)
    ship_code(context, [name])
    forget_modules()
    monkeypatch.syspath_prepend(str(context.archive))

    arrived = importlib.import_module(name)
    assert ".zip/" in str(arrived.__file__)
    with pytest.raises(ValueError, match="as written") as caught:
        arrived.work()
    told = "".join(traceback.format_exception(caught.value))
    assert f'File "{written}", line 2, in work' in told
    assert 'raise ValueError("as written by the user")' in told


def test_sources_are_shipped_too_for_executors_with_another_python(author: Path, tmp_path: Path) -> None:
    importlib.import_module("package_of_ada.inner")
    context: Any = Context(tmp_path)
    ship_code(context, ["package_of_ada.inner"])

    with zipfile.ZipFile(context.archive) as archive:
        assert archive.read("package_of_ada/inner.py").decode() == SOURCE
        shipped = set(archive.namelist())
    assert {"state/errors.py", "state/errors.pyc", "state/redis_client/functions/keys.lua"} <= shipped


def test_a_package_of_ours_that_this_process_has_not_used_is_shipped_too(tmp_path: Path) -> None:
    """As by `txbatch doctor`, which runs no committer."""
    context: Any = Context(tmp_path)
    with mock.patch.dict(sys.modules):
        del sys.modules["committers"]
        ship_code(context, [])
    with zipfile.ZipFile(context.archive) as archive:
        assert "committers/group_commit.py" in archive.namelist()


def test_an_executor_can_load_the_function_library_from_what_was_shipped(tmp_path: Path) -> None:
    """It has to, if somebody flushes the server's functions while committers read."""
    context: Any = Context(tmp_path)
    ship_code(context, [])
    program = "import state.redis_client.function_library as it; print(it.__file__); print(it.library_code())"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(context.archive)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    where, _, code = printed.partition("\n")
    assert ".zip/" in where
    assert code == f"{library_code()}\n"


def test_what_has_not_changed_is_sent_to_executors_once(author: Path, tmp_path: Path) -> None:
    module = author / "one_module_of_ada.py"
    importlib.import_module("one_module_of_ada")
    context: Any = Context(tmp_path)
    first = ship_code(context, ["one_module_of_ada"])
    os.utime(module, (1, 1))
    assert ship_code(context, ["one_module_of_ada"]) == first
    module.write_text(f"{SOURCE}\n# edited\n", encoding="utf-8")
    second = ship_code(context, ["one_module_of_ada"])
    assert [path.name for path in context.added] == [first, second]


def test_a_file_that_does_not_compile_is_shipped_as_it_is(author: Path, tmp_path: Path) -> None:
    importlib.import_module("package_of_ada")
    (author / "package_of_ada" / "template.py").write_text("{% not python %}", encoding="utf-8")
    context: Any = Context(tmp_path)
    ship_code(context, ["package_of_ada"])

    with zipfile.ZipFile(context.archive) as archive:
        assert "package_of_ada/template.py" in archive.namelist()
        assert "package_of_ada/template.pyc" not in archive.namelist()
