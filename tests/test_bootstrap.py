"""``tools/bootstrap.sh`` is quiet about packages unless something fails; a script stands in for Python and pip."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cli.terminal import on_terminal

ROOT = Path(__file__).resolve().parent.parent
PYTHON = """#!/bin/sh
case "$*" in
    *'--version'*) echo 'Python 3.99' ;;
    *'-m venv'*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *'-m pip install'*) echo "Collecting $*"; echo 'a warning' >&2; exit "${PIP_STATUS:-0}" ;;
    '-'*'pyproject.toml') echo 'the key' ;;
esac
"""
SAID = [
    "bootstrap: making .venv with Python 3.99",
    "bootstrap: installing packages into .venv (pyspark alone is 450 MB)",
]


@pytest.fixture
def script(tmp_path: Path) -> str:
    """The script in a checkout of its own."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "bootstrap.sh", tmp_path / "tools")
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return str(tmp_path / "tools" / "bootstrap.sh")


def environment(script: str, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHON": str(Path(script).parent.parent / "python"), **more}


def run(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([script], env=environment(script, **more), capture_output=True, text=True, check=False)


def test_it_says_what_it_does_in_a_line_each_and_nothing_if_all_is_done(script: str) -> None:
    first, again = run(script), run(script)

    assert (first.returncode, first.stdout, first.stderr.splitlines()) == (0, "", SAID)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_what_pip_printed_is_shown_if_it_fails(script: str) -> None:
    failed = run(script, PIP_STATUS="3")

    assert failed.returncode == 3
    assert "Collecting -m pip install" in failed.stderr
    assert "a warning" in failed.stderr
    assert failed.stderr.splitlines()[-1] == f"{SAID[1]}: failed with exit code 3"
    assert run(script).returncode == 0, "the next one begins again"


def test_a_terminal_shows_for_how_long(script: str) -> None:
    shown = on_terminal([script], Path(script).parent, environment(script), columns=80)

    assert shown.code == 0
    assert f"{SAID[1]}: done" in shown.screen
    assert "Collecting" not in shown.screen
    assert max(map(len, shown.screen.splitlines())) < 80, "a longer line would not be replaced but scroll"
