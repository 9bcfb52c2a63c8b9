"""`txbatch bench` and `txbatch prove` find what a checkout has, or say what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.operating.cli.commands import checkout as module
from coordinator.operating.cli.commands.checkout import run_bench, run_prove
from state.errors import TopologyError


def test_the_simulation_is_played_with_its_arguments_wherever_the_command_is_run(tmp_path: Path) -> None:
    (tmp_path / "tests" / "simulation").mkdir(parents=True)
    (tmp_path / "tests" / "__init__.py").write_text("raise SystemExit('somebody else')\n")
    command = [
        sys.executable,
        "-m",
        "coordinator.operating.cli",
        "prove",
        "--small",
        "one-task",
        "--processes",
        "1",
        "--json",
    ]
    root = Path(module.__file__).parents[4]
    program = f"import sys; sys.path.insert(0, {str(root)!r}); sys.argv = {command[2:]!r}; "
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program + "from coordinator.operating.cli import main; main()"],
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


def write_benchmark(root: Path, code: str) -> None:
    script = root / "benchmarks" / "suite" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text(f"import sys\nimport benchmarks.suite\nsys.exit({code})\n", encoding="utf-8")


def test_the_benchmark_is_run_with_its_arguments(tmp_path: Path) -> None:
    write_benchmark(tmp_path, "len(sys.argv) - 1 if sys.argv[1:] == ['--help', '-x', '7'] else 99")
    assert run_bench(["--help", "-x", "7"], tmp_path) == 3


def test_an_installed_package_runs_the_benchmark_of_the_checkout_it_is_called_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_benchmark(tmp_path / "checkout", "4")
    assert run_bench([], tmp_path / "site-packages", tmp_path / "checkout") == 4
    assert f"measuring the checkout {tmp_path / 'checkout'}, not the installed package" in capsys.readouterr().err


def test_ctrl_c_leaves_the_benchmark_the_time_to_write_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_benchmark(tmp_path, "4")
    wait, interrupts = subprocess.Popen.wait, iter([KeyboardInterrupt, KeyboardInterrupt])

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        for interrupt in interrupts:
            raise interrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)

    assert run_bench([], tmp_path) == 4


def test_without_a_checkout_the_benchmark_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"part of the source checkout.* pip install -e '\.\[bench\]' there"):
        run_bench([], tmp_path, tmp_path)
