"""``txbatch run`` around a runner that stands in for Spark."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator.operating.cli.exits import StoppedError
from coordinator.operating.cli.run_command import execute
from coordinator.operating.cli.run_result import print_result
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import RunHistory, WaveTime
from state.errors import ReplayLimitError, TopologyError
from state.records.durability import Durability, DurabilityLevel, DurabilityReport
from tests.support.approved import approved
from tests.support.cli.jobs import JobFolder
from tests.support.cli.typed_runs import FakeRunner, typed_run
from tests.support.topologies.components import Lines, Pass, build

DONE: dict[str, Any] = {
    "last_txid": 12,
    "committed": 10,
    "tuples": 1000,
    "attempts": 11,
    "failed_attempts": 1,
    "waves": 3,
    "commit_groups": 2,
    "changes": 30,
    "first_wave_s": 5.0,
    "last_result_s": 9.0,
}
SECRET = ServerChoice("redis://:hunter22@host:1", Path("data"))


@pytest.fixture(autouse=True)
def job(folder: JobFolder) -> JobFolder:
    folder.write_job(more="print('imported')\n")
    return folder


@pytest.mark.parametrize("has_begun", [True, False], ids=["under way", "before it has begun"])
def test_json_tells_how_far_a_run_got_that_failed(capsys, has_begun: bool) -> None:
    def fails(topology: Any, request: RunRequest) -> RunStatistics:
        if has_begun:
            FakeRunner(**DONE)(topology, request)
        raise ReplayLimitError(13, 5, "redis://:hunter22@host:1 is away")

    with pytest.raises(ReplayLimitError):
        execute(typed_run(server=SECRET), fails)
    out = capsys.readouterr().out
    told = json.loads(out)
    assert out.count("\n") == 1
    assert (told["topology"], told.get("committed")) == ("lines", 10 if has_begun else None)
    assert (told["error"]["exit_code"], told["error"]["trouble"]) == (1, "replay-limit")
    assert told["error"]["message"].startswith("txid 13 failed 5 times")
    assert "hunter22" not in out


def test_a_refused_topology_runs_nothing_and_is_told_in_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    runner = FakeRunner()
    for as_json in (True, False):
        with pytest.raises(TopologyError, match="has no parameter 'x'"):
            execute(typed_run(parameters={"x": "1"}, as_json=as_json), runner)
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["topology"], told["error"]["exit_code"], told["error"]["trouble"]) == (None, 2, "parameter")
    assert runner.asked is None


def test_json_has_no_trouble_for_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*_: Any) -> RunStatistics:
        raise StoppedError(signal.SIGTERM)

    with pytest.raises(StoppedError):
        execute(typed_run(), stopped)
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {"exit_code": 143, "message": "stopped; run again to continue after the last commit"}


def test_a_run_without_a_committer_says_that_nothing_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    topology = build(("pass", Pass(), ["lines"]), spout=Lines(1))
    with LocalCluster() as cluster:
        done = cluster.submit(topology).run_until_idle()
    print_result(topology, done, ServerChoice(None, Path("data")), as_json=False, is_logged=False)
    assert "NOTHING KEPT: 1 transaction processed, with 4 tuples, and the topology has no" in capsys.readouterr().err


def test_the_password_of_a_server_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    execute(typed_run(as_json=False, server=SECRET), FakeRunner())
    shown = capsys.readouterr()
    assert "hash {lines}:lines in redis://host:1" in shown.out
    assert "hunter22" not in shown.out + shown.err


def test_the_runner_is_given_what_was_asked_for() -> None:
    runner, options = FakeRunner(), RunOptions(max_spout_pending=7, adopt=True)
    asked = {"conf": {"spark.a": "b=c"}, "master": "local[3]", "options": options, "server": SECRET}
    execute(typed_run(parameters={"topology_id": "mine"}, **asked), runner)
    assert (runner.topology.topology_id, runner.asked.factory_module) == ("mine", "job_of_lines")
    assert {name: getattr(runner.asked, name) for name in asked} == asked


@pytest.mark.parametrize(
    ("number", "is_interrupted", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, True, 143), (signal.SIGTERM, False, 0)],
    ids=["Ctrl-C", "SIGTERM", "a continuous input"],
)
def test_a_finite_input_that_is_drained_before_its_end_tells_so(capsys, number, is_interrupted, code) -> None:
    runner = FakeRunner(number, **DONE, is_interrupted=is_interrupted)
    assert execute(typed_run(as_json=False), runner) == code
    shown = capsys.readouterr()
    assert runner.drain_count == 1
    assert "lines: finishing what is in flight; a second signal stops at once" in shown.err
    said = "lines: stopped before the end of its input; run again to continue\n"
    assert (said in shown.out) is is_interrupted


@pytest.mark.parametrize("before_start", [False, True])
def test_a_second_signal_stops_at_once_and_so_does_the_first_before_the_start(before_start: bool) -> None:
    signals = (signal.SIGTERM,) if before_start else (signal.SIGINT, signal.SIGTERM)
    with pytest.raises(StoppedError) as stop:
        execute(typed_run(), FakeRunner(*signals, before_start=before_start))
    assert stop.value.signal_number == signal.SIGTERM


@pytest.mark.parametrize("signals", [(), (signal.SIGTERM,), (signal.SIGTERM, signal.SIGTERM)])
def test_the_signals_are_given_back(signals: tuple[int, ...]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        execute(typed_run(), FakeRunner(*signals))
    except StoppedError:
        assert len(signals) == 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def with_first_wave(size: int) -> RunHistory:
    history = RunHistory()
    history.waves.add(WaveTime(3.0, 0.1, size))
    return history


RUNS: dict[str, dict[str, Any]] = {
    "done": DONE | {"counters": Counter(invalid_utf8_lines=3)},
    "nothing new": {"last_txid": 12},
    "nothing written": DONE | {"changes": 0},
    "on disk": DONE
    | {"durability": DurabilityReport(Durability(DurabilityLevel.FSYNC), "nothing"), "released_txid": 12},
    "in memory": DONE | {"durability": DurabilityReport(Durability(), "its last second of commits")},
    "a first wave of 2": DONE | {"history": with_first_wave(2)},
    "a first wave of all": DONE | {"history": with_first_wave(10)},
    "dead letters": DONE | {"dead_letters": 3},
    "republished": DONE | {"republished": {6: 21}, "republished_letters": 1},
    "away once": DONE | {"server_away_count": 1, "server_away_s": 2.5},
    "away twice": DONE | {"server_away_count": 2, "server_away_s": 4},
    "one quarantined": DONE | {"quarantined": [1]},
    "many quarantined": DONE | {"quarantined": [*range(1, 13)]},
}


@pytest.mark.parametrize("as_json", [False, True], ids=["people", "programs"])
def test_what_a_run_has_done_is_said_and_json_is_the_only_line_on_standard_output(capsys, as_json: bool) -> None:
    said = []
    for name, done in RUNS.items():
        assert execute(typed_run(as_json=as_json), FakeRunner(**done)) == 0
        printed = capsys.readouterr()
        if as_json:
            assert printed.out == json.dumps(json.loads(printed.out), ensure_ascii=False) + "\n"
        said.append(f"== {name}\n-- standard error\n{printed.err}-- standard output\n{printed.out}")
    approved("\n".join(said), f"run-command-{'json' if as_json else 'text'}")
