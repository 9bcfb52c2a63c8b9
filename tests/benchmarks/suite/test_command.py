"""The command: with a machine that is made up, and once with real processes."""

from __future__ import annotations

import json

import pytest

from benchmarks.harness import MeasurementError
from benchmarks.suite import report
from benchmarks.suite.__main__ import QUICK_BUDGET_S, main, parse_arguments
from benchmarks.suite.cells import Measurement
from benchmarks.suite.sides.txbatch import columns


def fake(assignment):
    latencies = {"p50": 1.0, "p90": 2.0, "p99": 3.0, "max": 4.0} if assignment.cell.kind == "latency" else {}
    return Measurement(100, 100 * assignment.cell.tuples, 10.0, True, {}, latencies)


@pytest.fixture
def arguments(tmp_path):
    sides = ["--sides", "txbatch", "foreach_batch_best", "--workloads", "word_count", "ledger"]
    return [*sides, "--work-dir", str(tmp_path), "--megabytes", "0.02", "--sizes", "20", "100", "--tasks", "1", "2"]


def test_a_run_leaves_results_a_page_and_plots(arguments, tmp_path, capsys):
    assert main(arguments, fake) == 0

    stored = json.loads((tmp_path / "results.json").read_text())
    assert set(stored["about"]) == {"machine", "versions", "code", "settings"}
    # word count: 2 sides, 2 sizes, 2 tasks; ledger: 1 side, 1 size, 2 tasks; latency: 2 sides, 2 sizes
    assert len(stored["cells"]) == 8 + 2 + 4
    assert {len(entry["rounds"]) for entry in stored["cells"].values()} == {5}
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "rate-dark.png").is_file()
    assert "Peak rate: ledger, 2 tasks" in capsys.readouterr().out


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves out the plots, which take a second."""
    monkeypatch.setattr(report, "_drawn", lambda found: ([], ""))


@pytest.mark.usefixtures("undrawn")
def test_a_run_with_other_settings_does_not_continue_it(arguments, capsys):
    main(arguments, fake)

    assert main([*arguments, "--seconds", "1"], fake) == 2
    assert "settings: seconds was 10.0, is 1.0" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_a_measurement_that_fails_fails_the_command_but_not_the_others(arguments, tmp_path):
    def fails_once(assignment):
        if assignment.cell.side == "txbatch" and assignment.cell.tuples == 20:
            raise MeasurementError("gone")
        return fake(assignment)

    assert main(arguments, fails_once) == 1
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert len(cells["rate txbatch word_count 100x2"]["rounds"]) == 5


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_ends_with_a_report_of_what_is_known(arguments, capsys):
    asked = []

    def interrupted(assignment):
        asked.append(assignment)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return fake(assignment)

    assert main(arguments, interrupted) == 0
    shown = capsys.readouterr()
    assert "stopped" in shown.err
    assert "not measured yet, run the command again" in shown.out


def test_quick_is_short_and_ends_in_time():
    options = parse_arguments(["--quick"])

    assert (options.rounds, options.tasks, options.budget) == (1, [2], QUICK_BUDGET_S)
    assert options.results.name != parse_arguments([]).results.name, "or its settings would stop the full run"


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--sizes", "-5"], ["--seconds", "x"], ["--sides", "storm"]])
def test_arguments_that_make_no_sense_are_refused(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(words)
    assert "error: argument" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_real_processes_measure_rate_and_latency(tmp_path, capsys):
    words = ["--sides", "txbatch", "redis_pipeline", "--work-dir", str(tmp_path), "--megabytes", "0.2"]
    words += [
        "--workloads",
        "word_count",
        "--sizes",
        "100",
        "--tasks",
        "1",
        "--rounds",
        "1",
        "--seconds",
        "0.5",
        "--warm-up",
        "0.5",
    ]

    code = main(words)

    shown = capsys.readouterr()
    assert code == 0, shown.err + shown.out
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert len(cells) == 2 + 2
    for entry in cells.values():
        (found,) = entry["rounds"]
        assert found["measurement"]["is_exact"]
        assert found["measurement"]["transactions"] > 0
    assert cells["latency txbatch word_count 100x1"]["rounds"][0]["measurement"]["latencies_ms"]["p50"] > 1


def test_the_side_of_columns_runs_the_shipped_example_with_as_many_tasks(tmp_path):
    (tmp_path / "lines.txt").write_text("to be or not\n")
    made = columns(str(tmp_path / "*.txt"), 10, 3)
    assert {component.task_count for component in made.components} == {3}
    assert made.topology_id == "word_count"
