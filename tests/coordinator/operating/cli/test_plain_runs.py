"""``txbatch run`` on plain topologies, around a runner that stands in for Spark."""

from __future__ import annotations

import signal
from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from coordinator.operating.cli.commands import run as run_module
from coordinator.operating.cli.run_command import TypedRun, execute
from coordinator.operating.cli.run_options import EndOptions, LimitOptions, options_given
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.transactional.options import RunOptions
from state.errors import TopologyError
from state.records.durability import DurabilityLevel
from tests.support.approved import approved
from tests.support.cli.in_process import txbatch
from tests.support.cli.jobs import PLAIN_JOB, JobFolder
from tests.support.cli.typed_runs import FakeRunner, never, typed_run


def plain_run(**changes: Any) -> TypedRun:
    return typed_run(**{"target": "job_of_plain_lines:topology", **changes})


def runner_of(*signals: int, **statistics: Any) -> FakeRunner:
    return FakeRunner(*signals, kind=PlainStatistics, **statistics)


@pytest.fixture
def plain_folder(folder: JobFolder) -> JobFolder:
    folder.write("job_of_plain_lines.py", PLAIN_JOB)
    return folder


DONE: dict[str, Any] = {
    "emitted": 2_400,
    "acked": 2_000,
    "failed": 400,
    "waves": 3,
    "crashed_waves": 1,
    "first_wave_s": 5.0,
    "last_result_s": 9.0,
}


def test_what_a_plain_run_has_done_is_said_and_json_is_one_line(plain_folder: JobFolder, capsys) -> None:
    said = []
    for as_json in (False, True):
        assert execute(plain_run(as_json=as_json), never, runner_of(**DONE)) == 0
        said.append(capsys.readouterr().out)
    assert said[1].count("\n") == 1
    approved("".join(said), "run-command-plain")


@pytest.mark.parametrize("stop_when_idle", [True, False])
def test_the_runner_is_given_what_was_asked_for(plain_folder: JobFolder, stop_when_idle: bool) -> None:
    runner = runner_of()
    asked = plain_run(
        parameters={"topology_id": "mine"}, conf={"spark.a": "b=c"}, ending=EndOptions(stop_when_idle=stop_when_idle)
    )
    execute(asked, never, runner)
    assert isinstance(runner.topology, PlainTopology)
    assert runner.topology.topology_id == "mine"
    given = runner.asked
    assert (given.master, given.conf, given.factory_module) == ("local[2]", {"spark.a": "b=c"}, "job_of_plain_lines")
    assert given.options == PlainRunOptions(stop_when_idle=stop_when_idle)


@pytest.mark.parametrize(("is_interrupted", "code"), [(False, 0), (True, 143)])
def test_a_signal_drains_and_is_the_proper_end_of_what_has_no_end(plain_folder, capsys, is_interrupted, code) -> None:
    runner = runner_of(signal.SIGTERM, **DONE, is_interrupted=is_interrupted)
    assert execute(plain_run(as_json=False), never, runner) == code
    assert runner.drain_count == 1
    ended = "stopped before its spouts were idle" if is_interrupted else "done"
    assert capsys.readouterr().out.startswith(f"lines: {ended}\n")


def test_a_plain_topology_is_run_when_nothing_about_transactions_is_typed(plain_folder: JobFolder, monkeypatch) -> None:
    runner = runner_of(**DONE)
    monkeypatch.setattr(run_module, "execute", partial(execute, plain_runner=runner))
    assert txbatch("run", "job_of_plain_lines:topology", "--stop-when-idle") == 0
    assert runner.topology.topology_id == "lines"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(max_spout_pending=7), "--max-pending is for transactional topologies, but 'lines' is a plain one"),
        (RunOptions(pulse=False, wave_target_s=1.0, history=3), "--wave-target-ms and --no-pulse and --history are"),
    ],
)
def test_options_about_transactions_are_refused_by_the_names_that_are_typed(plain_folder, options, said) -> None:
    with pytest.raises(TopologyError, match=said):
        execute(plain_run(options=options), never, never)


CHANGED = LimitOptions(
    max_pending=7, wave_target_ms=1, executors_timeout=7.0, commit_group_max=7, commit_target_ms=7, max_attempts=7,
    on_poison="quarantine", max_quarantined=7, max_bad_fraction=0.5, adopt="skip", accept_state_changes=True,
    durability=DurabilityLevel.FSYNC, durability_replicas=7, history=7, pulse=False, slots=7,
)  # fmt: skip


def test_every_option_that_may_be_refused_is_one_of_the_command(output) -> None:
    shown = output("run --help")
    given = options_given(CHANGED.options())
    assert len(given) == len(fields(LimitOptions))
    assert [name for name in given if name not in shown] == []


def test_the_local_engine_is_refused(plain_folder: JobFolder, complaint) -> None:
    assert "--engine local is for transactional topologies, but 'lines' is a plain" in complaint(
        "run job_of_plain_lines:topology --engine local"
    )


def test_an_idle_end_is_refused_where_there_are_transactions(folder: JobFolder) -> None:
    folder.write_job()
    with pytest.raises(TopologyError, match="--stop-when-idle is for plain topologies, but 'lines' is transactional"):
        execute(plain_run(target="job_of_lines:topology", ending=EndOptions(stop_when_idle=True)), never, never)
