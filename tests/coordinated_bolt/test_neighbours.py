"""Another package called `state` that is first on the path is named in a sentence, whatever is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
IMPORTED = ["coordinated_bolt", "committers", "coordinator", "examples.word_count"]


def importing(name: str, first_on_path: Path) -> subprocess.CompletedProcess[str]:
    path = [str(first_on_path), str(REPOSITORY), *(part for part in sys.path if "site-pack" in part)]
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import {name}"],
        cwd=first_on_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def assert_named(other: Path, done: subprocess.CompletedProcess[str], name: str = "state") -> None:
    assert done.returncode == 1
    sentence = done.stderr.rstrip().splitlines()[-1]
    assert sentence.startswith(f"ImportError: import {name} finds {other}")
    assert f"not txbatch's own package in {REPOSITORY / name}" in sentence
    assert sentence.endswith("rename it, or remove its folder from sys.path and PYTHONPATH")


@pytest.mark.parametrize("imported", IMPORTED)
def test_another_module_called_state_is_named_whichever_package_is_imported(tmp_path, imported):
    other = tmp_path / "state.py"
    other.write_text("OURS = False\n", encoding="utf-8")
    assert_named(other, importing(imported, tmp_path))


@pytest.mark.parametrize("name", ["committers", "coordinator"])
def test_a_script_of_ones_own_with_the_name_of_another_package_is_named_too(tmp_path, name):
    other = tmp_path / f"{name}.py"
    other.write_text("OURS = False\n", encoding="utf-8")
    assert_named(other, importing("coordinated_bolt", tmp_path), name)


def test_another_package_called_state_is_named(tmp_path):
    other = tmp_path / "state"
    other.mkdir()
    (other / "__init__.py").write_text("OURS = False\n", encoding="utf-8")
    assert_named(other, importing("coordinator", tmp_path))


def test_a_folder_called_state_gives_way_to_the_package_further_down_the_path(tmp_path):
    (tmp_path / "state").mkdir()
    done = importing("coordinator", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
