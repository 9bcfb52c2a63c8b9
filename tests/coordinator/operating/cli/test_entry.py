"""The command as it is typed: help, version, usage errors, and what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.cli.in_process import txbatch

SCRIPT = "import sys; sys.argv[0] = '/usr/bin/txbatch'\nfrom coordinator.operating.cli import main\nmain(['--version'])"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert txbatch("--version") == 0
    assert capsys.readouterr().out == f"txbatch {version('txbatch')}\n"


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert txbatch("--help") == 0
    assert "3 fenced" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("walk",),
        ("run",),
        ("run", "m:f", "--no-such-option"),
        ("run", "m:f", "--max-pending", "0"),
        ("run", "m:f", "--commit-group-max", "many"),
        ("run", "m:f", "--adopt=everything"),
        ("run", "m:f", "--adopt="),
        ("run", "no_such_module_at_all:f"),
        ("run", "m"),
        ("run", "examples.word_count:topology", "--redis", "redis://h:1", "--data-dir", "d"),
        ("run", "examples.word_count:topology", "--conf", "spark.no.value"),
        ("status",),
        ("status", "words", "--data-dir", "/no/such/folder"),
        ("drop", "words", "--yes", "--data-dir", "/no/such/folder"),
    ],
)
def test_a_wrong_usage_ends_with_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert txbatch(*arguments) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err
    assert "Traceback" not in shown.err


def test_somebody_elses_state_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state.py").write_text("", encoding="utf-8")
    root = Path(__file__).parents[4]
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]\n"

    ran = subprocess.run([sys.executable, "-c", path + SCRIPT], capture_output=True, text=True, check=False)

    assert ran.returncode == 2
    assert ran.stderr.startswith(f"txbatch: import state finds {tmp_path / 'state.py'}, not txbatch's own package in ")
    assert ran.stderr.count("\n") == 1
