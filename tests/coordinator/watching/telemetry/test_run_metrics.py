"""Metrics agree with the statistics of the run they come from, in both kinds of runs."""

from __future__ import annotations

import re
from random import Random

from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.watching.run_observer import AttemptsIssued, GroupCommitted, RunBegan, RunEnded, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.run_metrics import EVERY_S, RunMetrics
from state.attempt import TransactionAttempt
from tests.support.cli.in_process import HandClock
from tests.support.runs.answers import failing_at
from tests.support.runs.in_process_plain_engine import InProcessPlainEngine
from tests.support.runs.scripted import Run
from tests.support.topologies.plain_jobs import Told, coordinator_of, planned


class Sink(BaseBasicBolt):
    """Takes every tuple."""

    def execute(self, tup, collector): ...


def numbers(metrics):
    """Name and labels -> value, of everything but buckets."""
    found = {}
    for measure in metrics.collect():
        for sample in measure.samples:
            if not sample.name.endswith("_bucket"):
                assert sample.labels["topology"] == "lines"
                labels = ",".join(f"{name}={value}" for name, value in sample.labels.items() if name != "topology")
                found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


def observed_run(*, transactions=5, **options):
    metrics = RunMetrics("lines", HandClock(0.0), lambda: 1_000.0)
    run = Run(transactions, max_spout_pending=4, observers=[metrics], **options)
    return run, metrics


def observe(run):
    with run.observers.until_the_end():
        run()


def test_the_figures_are_those_of_the_run():
    run, metrics = observed_run()
    observe(run)
    found, statistics = numbers(metrics), run.coordinator.statistics
    assert found["txbatch_committed_txid"] == 5
    assert found["txbatch_committed_transactions_total"] == statistics.committed == 5
    assert found["txbatch_committed_tuples_total"] == statistics.tuples
    assert found["txbatch_waves_total"] == found["txbatch_wave_seconds_count"] == statistics.waves
    assert found["txbatch_commit_groups_total"] == found["txbatch_commit_seconds_count"] == statistics.commit_groups
    assert found["txbatch_commit_group_transactions_sum"] == found["txbatch_transaction_seconds_count"] == 5
    assert found["txbatch_component_executed_tuples_total{component=count}"] == 50
    assert found["txbatch_last_commit_timestamp_seconds"] == 1_000.0
    assert "txbatch_emitted_tuples_total" not in found


def test_failed_attempts_are_counted_by_reason_from_zero():
    run, metrics = observed_run()
    run.engine.on_wave = failing_at(run, 2, kind=FailureKind.INCOMPLETE)
    observe(run)
    found = numbers(metrics)
    failed = {name: value for name, value in found.items() if name.startswith("txbatch_failed_attempts")}
    assert failed.pop("txbatch_failed_attempts_total{reason=incomplete}") == 1
    assert sum(failed.values()) == failed["txbatch_failed_attempts_total{reason=lower_failed}"]
    assert len(failed) == 10
    assert sum(failed.values()) + 1 == run.coordinator.statistics.failed_attempts


def test_a_transaction_takes_from_its_first_attempt_to_its_commit():
    time = HandClock(0.0)
    metrics = RunMetrics("lines", time, lambda: 0.0)
    metrics(RunBegan("lines", RunStatistics(), 30.0))
    metrics(AttemptsIssued((TransactionAttempt(1, 1),)))
    time.now_s = 2.0
    metrics(AttemptsIssued((TransactionAttempt(1, 2),)))
    time.now_s = 3.0
    metrics(GroupCommitted((TransactionAttempt(1, 2),), 0.5, 1, 1))
    metrics(RunEnded(None))
    assert numbers(metrics)["txbatch_transaction_seconds_sum"] == 3.0


def test_what_is_read_is_made_whole_now_and_then_by_the_run_itself():
    time, statistics = HandClock(0.0), RunStatistics()
    metrics = RunMetrics("lines", time, lambda: 0.0)
    assert metrics.collect() == ()
    metrics(RunBegan("lines", statistics, 30.0))
    statistics.last_txid = 7
    metrics(TurnEnded(is_idle=True))
    assert numbers(metrics)["txbatch_committed_txid"] == 0
    time.now_s = EVERY_S
    metrics(TurnEnded(is_idle=True))
    assert numbers(metrics)["txbatch_committed_txid"] == 7


def test_a_plain_run_has_messages_instead_of_transactions():
    metrics = RunMetrics("lines", HandClock(0.0), lambda: 0.0)
    builder = TopologyBuilder("test")
    builder.set_spout("numbers", Told([1, 2, 3]))
    builder.set_bolt("sink", Sink()).shuffle_grouping("numbers")
    plan = planned(builder.build())
    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1)), observers=[metrics]).run()
    found = numbers(metrics)
    assert found["txbatch_emitted_tuples_total"] == found["txbatch_acked_messages_total"] == 3
    assert found["txbatch_failed_messages_total"] == 0
    assert found["txbatch_waves_total"] == found["txbatch_wave_seconds_count"] == statistics.waves
    assert "txbatch_committed_txid" not in found


def test_names_and_helps_follow_the_conventions():
    run, metrics = observed_run(transactions=1)
    observe(run)
    for measure in metrics.collect():
        assert re.fullmatch(r"txbatch(_[a-z]+)+", measure.name)
        assert re.fullmatch(r"[A-Z].*\.", measure.documentation)
        suffixes = {sample.name.removeprefix(measure.name) for sample in measure.samples}
        expected = {"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}
        assert suffixes <= expected[measure.type]


def test_a_bucket_includes_all_smaller_ones_and_its_own_end():
    metrics = RunMetrics("lines", HandClock(0.0), lambda: 0.0)
    metrics(RunBegan("lines", RunStatistics(), 30.0))
    for seconds in (0.004, 0.005, 0.2, 100.0):
        metrics(GroupCommitted((TransactionAttempt(1, 1),), seconds, 1, 1))
    metrics(RunEnded(None))
    (commits,) = (family for family in metrics.collect() if family.name == "txbatch_commit_seconds")
    found = {sample.labels.get("le", sample.name): sample.value for sample in commits.samples}
    assert (found["0.005"], found["0.1"], found["0.25"], found["60.0"], found["+Inf"]) == (2, 2, 3, 3, 4)
    assert found["txbatch_commit_seconds_count"] == 4
    assert found["txbatch_commit_seconds_sum"] == 100.209


def test_a_gauge_whose_value_is_unknown_has_no_sample():
    metrics = RunMetrics("lines", HandClock(0.0), lambda: 0.0)
    metrics(RunBegan("lines", RunStatistics(), 30.0))
    assert "txbatch_input_cut_ratio" not in numbers(metrics)
    assert "txbatch_input_cut_ratio" in {family.name for family in metrics.collect()}
