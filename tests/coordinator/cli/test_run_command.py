"""``txbatch run`` around a runner that stands in for Spark."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.exits import StoppedError
from coordinator.cli.run_command import execute
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.transactional.options import RunOptions
from coordinator.transactional.run_summary import RunStatistics
from state.errors import ReplayLimitError, TopologyError
from state.records.durability import Durability, DurabilityLevel, DurabilityReport
from tests.support.cli.jobs import JobFolder
from tests.support.cli.typed_runs import FakeRunner, typed_run

DONE: dict[str, Any] = {
    "last_txid": 12,
    "committed": 10,
    "tuples": 1000,
    "attempts": 11,
    "failed_attempts": 1,
    "waves": 3,
    "commit_groups": 2,
    "first_wave_s": 5.0,
    "last_result_s": 9.0,
}


def test_json_is_the_only_line_on_standard_output(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job(more="print('imported')\n")

    assert execute(typed_run(), FakeRunner(**DONE)) == 0

    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "topology": "lines",
        "committed": 10,
        "last_txid": 12,
        "tuples": 1000,
        "seconds": 4.0,
        "attempts": 11,
        "failed_attempts": 1,
        "waves": 3,
        "commit_groups": 2,
    }
    assert shown.out.count("\n") == 1
    assert "imported" in shown.err


@pytest.mark.parametrize("has_begun", [True, False], ids=["under way", "before it has begun"])
def test_json_tells_how_far_a_run_got_that_failed(
    folder: JobFolder, capsys: pytest.CaptureFixture[str], has_begun: bool
) -> None:
    folder.write_job()

    def fails(topology: Any, request: RunRequest) -> RunStatistics:
        if has_begun:
            FakeRunner(**DONE)(topology, request)
        raise ReplayLimitError(13, 5, "redis://:hunter22@host:1 is away")

    server = ServerChoice("redis://:hunter22@host:1", Path("data"))
    with pytest.raises(ReplayLimitError):
        execute(typed_run(server=server), fails)

    out = capsys.readouterr().out
    told = json.loads(out)
    assert out.count("\n") == 1
    assert (told["topology"], told.get("committed")) == ("lines", 10 if has_begun else None)
    assert (told["error"]["exit_code"], told["error"]["trouble"]) == (1, "replay-limit")
    assert told["error"]["message"].startswith("txid 13 failed 5 times")
    assert "hunter22" not in out


def test_json_tells_of_a_topology_that_was_refused(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    with pytest.raises(TopologyError):
        execute(typed_run(parameters={"x": "1"}), FakeRunner())

    told = json.loads(capsys.readouterr().out)
    assert told["topology"] is None
    assert (told["error"]["exit_code"], told["error"]["trouble"]) == (2, "parameter")


def test_json_has_no_trouble_for_a_signal(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    def stopped(*_: Any) -> RunStatistics:
        raise StoppedError(signal.SIGTERM)

    with pytest.raises(StoppedError):
        execute(typed_run(), stopped)

    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {"exit_code": 143, "message": "stopped; run again to continue after the last commit"}


def test_without_json_a_run_that_failed_prints_nothing_on_standard_output(
    folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_job()

    with pytest.raises(TopologyError):
        execute(typed_run(parameters={"x": "1"}, as_json=False), FakeRunner())

    assert capsys.readouterr().out == ""


def test_people_are_told_rates_counters_and_keys(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    execute(typed_run(as_json=False), FakeRunner(**DONE, counters=Counter(invalid_utf8_lines=3)))

    assert capsys.readouterr().out.splitlines() == [
        "lines: done",
        "  10 transactions committed in 4.0 s, up to txid 12; 1 of 11 attempts failed",
        "  2.5 transactions/s, 250 tuples/s, 3 waves, 2 commits",
        "  counter invalid_utf8_lines: 3",
        "  hash {lines}:lines in the private server in 'data'",
    ]


def test_people_are_told_which_dead_letters_are_those_of_this_run(
    folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_job()

    execute(typed_run(as_json=False), FakeRunner(**DONE, dead_letters=3))

    said = "  3 dead letters in this run; `txbatch dead-letters list lines` lists all there are"
    assert said in capsys.readouterr().out.splitlines()


def test_the_password_of_a_server_is_not_shown(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    execute(typed_run(as_json=False, server=ServerChoice("redis://:hunter22@host:1", Path("data"))), FakeRunner())

    shown = capsys.readouterr()
    assert "hash {lines}:lines in redis://host:1" in shown.out
    assert "hunter22" not in shown.out + shown.err


def test_the_runner_is_given_what_was_asked_for(folder: JobFolder) -> None:
    folder.write_job()
    runner = FakeRunner()
    options = RunOptions(max_spout_pending=7, adopt=True)
    server = ServerChoice("redis://host:1", Path("data"))

    execute(
        typed_run(
            parameters={"topology_id": "mine"},
            conf={"spark.a": "b=c"},
            master="local[3]",
            options=options,
            server=server,
        ),
        runner,
    )

    given = runner.asked
    assert (runner.topology.topology_id, given.server, given.conf) == ("mine", server, {"spark.a": "b=c"})
    assert (given.master, given.options, given.factory_module) == ("local[3]", options, "job_of_lines")


def test_nothing_is_run_when_the_topology_is_refused(folder: JobFolder) -> None:
    folder.write_job()
    runner = FakeRunner()

    with pytest.raises(TopologyError, match="has no parameter 'x'"):
        execute(typed_run(parameters={"x": "1"}), runner)

    assert runner.asked is None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_finite_input_that_is_drained_before_its_end_tells_so(
    folder: JobFolder, capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    folder.write_job()
    runner = FakeRunner(number, **DONE, is_interrupted=True)

    assert execute(typed_run(), runner) == code

    shown = capsys.readouterr()
    assert runner.drain_count == 1
    assert "lines: finishing what is in flight; a second signal stops at once" in shown.err
    assert json.loads(shown.out)["committed"] == 10


def test_a_continuous_input_ends_well_when_it_is_drained(folder: JobFolder) -> None:
    folder.write_job()
    runner = FakeRunner(signal.SIGTERM, **DONE, is_interrupted=False)

    assert execute(typed_run(), runner) == 0
    assert runner.drain_count == 1


def test_people_are_told_that_the_input_goes_on(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    execute(typed_run(as_json=False), FakeRunner(signal.SIGTERM, is_interrupted=True))

    assert capsys.readouterr().out.startswith("lines: stopped before the end of its input; run again to continue\n")


def test_a_second_signal_stops_at_once(folder: JobFolder) -> None:
    folder.write_job()

    with pytest.raises(StoppedError) as stop:
        execute(typed_run(), FakeRunner(signal.SIGINT, signal.SIGTERM))

    assert stop.value.signal_number == signal.SIGTERM


def test_a_signal_before_the_start_stops(folder: JobFolder) -> None:
    folder.write_job()

    with pytest.raises(StoppedError):
        execute(typed_run(), FakeRunner(signal.SIGTERM, before_start=True))


@pytest.mark.parametrize("signals", [(), (signal.SIGTERM,), (signal.SIGTERM, signal.SIGTERM)])
def test_the_signals_are_given_back(folder: JobFolder, signals: tuple[int, ...]) -> None:
    folder.write_job()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    try:
        execute(typed_run(), FakeRunner(*signals))
    except StoppedError:
        assert len(signals) == 2

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_progress_goes_to_standard_error_by_the_line(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    execute(typed_run(), FakeRunner(**DONE))

    assert capsys.readouterr().err.splitlines() == [
        "lines: starting",
        "lines: running",
        "lines: 10 transactions committed in 4.0 s, up to txid 12; 1 of 11 attempts failed",
    ]


def test_a_run_with_nothing_to_do_says_so(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()

    execute(typed_run(), FakeRunner(last_txid=12))

    assert "lines: nothing new: already committed up to txid 12" in capsys.readouterr().err


FSYNC = Durability(DurabilityLevel.FSYNC)
EVERYSEC = "its last second or two of commits (appendfsync everysec)"


def test_what_the_server_can_lose_and_what_is_waited_for_is_said_once(
    folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_job()
    execute(typed_run(as_json=False), FakeRunner(**DONE, durability=DurabilityReport(Durability(), EVERYSEC)))
    shown = capsys.readouterr()
    assert (
        f"lines: a power cut may take from this server {EVERYSEC}; what is released upstream waits for its answer only "
        "(durability memory)" in shown.err
    )
    assert (shown.err + shown.out).count("power cut") == 1


def test_the_last_lines_say_what_was_confirmed(folder: JobFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write_job()
    done = DONE | {"durability": DurabilityReport(FSYNC, "nothing"), "released_txid": 12}
    execute(typed_run(as_json=False), FakeRunner(**done))
    assert "  on disk up to txid 12, confirmed by the server (durability fsync)" in capsys.readouterr().out.splitlines()


def test_json_names_the_level_and_how_far_it_was_confirmed(
    folder: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_job()
    execute(typed_run(), FakeRunner(**DONE, durability=DurabilityReport(FSYNC, "nothing"), released_txid=12))
    assert json.loads(capsys.readouterr().out)["durability"] == {
        "level": "fsync",
        "released_txid": 12,
        "server_can_lose": "nothing",
    }
