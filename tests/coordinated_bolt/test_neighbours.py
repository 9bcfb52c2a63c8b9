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


@pytest.mark.parametrize(
    ("imported", "file", "name"),
    [
        *((imported, "state.py", "state") for imported in IMPORTED),
        ("coordinator", "state/__init__.py", "state"),
        ("coordinated_bolt", "committers.py", "committers"),
        ("coordinated_bolt", "coordinator.py", "coordinator"),
    ],
)
def test_another_module_with_the_name_of_one_of_our_packages_is_named(tmp_path, imported, file, name):
    other = tmp_path / file
    other.parent.mkdir(exist_ok=True)
    other.write_text("OURS = False\n", encoding="utf-8")
    done = importing(imported, tmp_path)
    assert done.returncode == 1
    sentence = done.stderr.rstrip().splitlines()[-1]
    assert sentence.startswith(f"ImportError: import {name} finds {tmp_path / file.partition('/')[0]}")
    assert f"not txbatch's own package in {REPOSITORY / name}" in sentence
    assert sentence.endswith("rename it, or remove its folder from sys.path and PYTHONPATH")


def test_a_folder_called_state_gives_way_to_the_package_further_down_the_path(tmp_path):
    (tmp_path / "state").mkdir()
    done = importing("coordinator", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
