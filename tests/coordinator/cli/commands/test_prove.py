"""`txbatch prove` finds the simulation of a checkout, or says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli.commands import checkout as module
from coordinator.cli.commands.checkout import run_prove
from state.errors import TopologyError


def test_the_simulation_is_played_with_its_arguments_wherever_the_command_is_run(tmp_path: Path) -> None:
    (tmp_path / "tests" / "simulation").mkdir(parents=True)
    (tmp_path / "tests" / "__init__.py").write_text("raise SystemExit('somebody else')\n")
    command = [sys.executable, "-m", "coordinator.cli", "prove", "--small", "one-task", "--processes", "1", "--json"]
    root = Path(module.__file__).parents[3]
    program = f"import sys; sys.path.insert(0, {str(root)!r}); sys.argv = {command[2:]!r}; "
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program + "from coordinator.cli import main; main()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    played = json.loads(ran.stdout)
    assert (played["played"], played["failed"]) == (1, 0)


def test_without_a_checkout_it_says_where_the_simulation_is(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="the simulation is part of the source checkout") as told:
        run_prove([], tmp_path)
    assert str(tmp_path / "tests" / "simulation") in str(told.value)
    assert "clone the repository" in str(told.value)


def test_without_lua_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIMULATION_NEEDS", "no_module_of_this_name")
    with pytest.raises(TopologyError, match="is not installed; run pip install"):
        run_prove([])
