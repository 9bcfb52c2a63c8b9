"""The command as it is typed: help, version, usage errors, and what is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCRIPT = """
import sys
sys.argv = ['/usr/bin/txbatch', '--version']
sys.path[:0] = {folders!r}
from {module} import {function}
{function}()
"""
"""What an installer writes of the entry in pyproject.toml, which finds another's packages first."""


def test_the_version_is_shown_and_help_tells_the_exit_codes(output) -> None:
    assert output("--version") == f"txbatch {version('txbatch')}\n"
    assert "3 fenced" in output("--help")


@pytest.mark.parametrize("name", ["state", "committers", "coordinator"])
def test_somebody_elses_package_ends_in_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("", encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["txbatch"].partition(":")
    script = SCRIPT.format(folders=[str(tmp_path), str(ROOT)], module=module, function=function)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    found = tmp_path / f"{name}.py"
    assert ran.stderr.startswith(f"txbatch: import {name} finds {found}, not txbatch's own package in ")
    assert ran.stderr.count("\n") == 1
