"""The command as it is typed: help, version, usage errors, and what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from coordinator.cli.commands.checkout import run_bench
from state.errors import TopologyError
from tests.support.cli.in_process import txbatch

SCRIPT = "import sys; sys.argv[0] = '/usr/bin/txbatch'\nfrom coordinator.cli import main\nmain(['--version'])"


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
    root = Path(__file__).parents[3]
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]\n"

    ran = subprocess.run([sys.executable, "-c", path + SCRIPT], capture_output=True, text=True, check=False)

    assert ran.returncode == 2
    assert ran.stderr.startswith(f"txbatch: import state finds {tmp_path / 'state.py'}, not txbatch's own package in ")
    assert ran.stderr.count("\n") == 1


def test_the_benchmark_is_run_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "benchmarks" / "suite" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text(
        "import sys\nimport benchmarks.suite\n"
        "sys.exit(len(sys.argv) - 1 if sys.argv[1:] == ['--help', '-x', '7'] else 99)\n",
        encoding="utf-8",
    )

    assert run_bench(["--help", "-x", "7"], tmp_path) == 3


def test_an_installed_package_runs_the_benchmark_of_the_checkout_it_is_called_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "checkout" / "benchmarks" / "suite" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text("import sys\nsys.exit(4)\n", encoding="utf-8")

    assert run_bench([], tmp_path / "site-packages", tmp_path / "checkout") == 4
    assert f"measuring the checkout {tmp_path / 'checkout'}, not the installed package" in capsys.readouterr().err


def test_ctrl_c_leaves_the_benchmark_the_time_to_write_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "benchmarks" / "suite" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text("import sys\nsys.exit(4)\n", encoding="utf-8")
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
