"""`txbatch bench` finds what a checkout has, or says what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from coordinator.operating.cli.commands.checkout import run_bench
from state.errors import TopologyError


def write_benchmark(root: Path, code: str) -> None:
    script = root / "benchmarks" / "suite" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text(f"import sys\nimport benchmarks.suite\nsys.exit({code})\n", encoding="utf-8")


def test_the_benchmark_is_run_with_its_arguments(tmp_path: Path) -> None:
    write_benchmark(tmp_path, "len(sys.argv) - 1 if sys.argv[1:] == ['--help', '-x', '7'] else 99")
    assert run_bench(["--help", "-x", "7"], tmp_path) == 3


def test_an_installed_package_runs_the_benchmark_of_the_checkout_it_is_called_in(tmp_path: Path, capsys) -> None:
    write_benchmark(tmp_path / "checkout", "4")
    assert run_bench([], tmp_path / "site-packages", tmp_path / "checkout") == 4
    assert f"measuring the checkout {tmp_path / 'checkout'}, not the installed package" in capsys.readouterr().err


def test_ctrl_c_leaves_the_benchmark_the_time_to_write_its_report(tmp_path: Path, monkeypatch) -> None:
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
