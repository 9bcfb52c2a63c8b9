"""A run as a service: stopped under load and started again, scraped by a real Prometheus, explained by its log."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

from tests.support.cli.jobs import JobFolder
from tests.support.cli.processes import Command, ran, started, stored
from tests.support.telemetry.prometheus import scraping

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.redis]

END = 3_000
JOB = """
import time
from pathlib import Path

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import ITransactionalSpout, SpoutCoordinator, SpoutEmitter, TransactionalTopologyBuilder
from state import FailedException, HashState


class Numbers(ITransactionalSpout):
    output_fields = ("number",)

    def __init__(self, end):
        self.end = end

    def get_coordinator(self, conf, context):
        return NumbersCoordinator(self.end)

    def get_emitter(self, conf, context):
        return NumbersEmitter()


class NumbersCoordinator(SpoutCoordinator):
    def __init__(self, end):
        self.end, self.first, self.last = end, 0, 0

    def resume(self):
        self.first = self.last = self.run_so_far.last_txid
        self.began = time.monotonic()

    def is_ready(self):
        arrived = self.first + 300 * (time.monotonic() - self.began)
        return self.last < min(self.end, arrived)

    def initialize_transaction(self, txid, previous):
        self.last = txid
        return txid


class NumbersEmitter(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        collector.emit([metadata])


class Sum(BaseBatchBolt, ICommitter):
    numbers = HashState("numbers", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.sum = 0

    def execute(self, tup):
        self.sum += tup["number"]

    def finish_batch(self):
        self.numbers.increment_many({"sum": self.sum, "transactions": 1})


class Check(BaseBatchBolt):
    output_fields = ("number",)

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.attempt = collector, attempt

    def execute(self, tup):
        asked = Path("asked-for")
        if tup["number"] == 3 and not asked.exists():
            asked.touch()
            raise FailedException("the price list is being written")
        if tup["number"] == 5:
            raise ValueError("number 5 has no price")
        self.collector.emit([tup["number"]])


def service(end: int = 3000):
    builder = TransactionalTopologyBuilder("numbers", "numbers", Numbers(end))
    builder.set_committer_bolt("sum", Sum()).global_grouping("numbers")
    return builder.build()


def priced():
    builder = TransactionalTopologyBuilder("numbers", "numbers", Numbers(10))
    builder.set_bolt("check", Check()).shuffle_grouping("numbers")
    builder.set_committer_bolt("sum", Sum()).global_grouping("check")
    return builder.build()
"""


@pytest.fixture
def job(folder: JobFolder) -> JobFolder:
    folder.write("job.py", JOB)
    return folder


def records_of(said: str) -> list[dict[str, Any]]:
    """What was said on standard error, where every line has to be a record."""
    return [json.loads(line) for line in said.splitlines()]


def stop(command: Command) -> dict[str, Any]:
    """Ends a service as a service manager does; returns the figures of its run."""
    command.process.send_signal(signal.SIGTERM)
    code, output = command.ended()
    assert (code, output) == (0, ""), command.said()
    last = records_of(command.said())[-1]
    assert last["message"] == "numbers: done"
    figures = last["figures"]
    assert isinstance(figures, dict)
    return figures


@pytest.mark.nightly
def test_a_service_stopped_under_load_and_started_again_loses_nothing_and_prometheus_counts_it_all(job, tmp_path):
    arguments = ("job:service", "--log-format", "json", "--metrics-port", "0", "--max-pending", "64")
    with started(job, *arguments) as first:
        first.await_words(" committed · ")
        figures = stop(first)
    before = figures["last_txid"]
    assert figures["committed"] == before
    assert 0 < before < END
    with started(job, *arguments) as second:
        second.await_words("metrics on ")
        target = re.search(r"metrics on http://([^/]+)/metrics", second.said())
        assert target is not None
        with scraping(target[1], tmp_path / "prometheus") as prometheus:
            prometheus.await_value("txbatch_committed_txid", END)
            prometheus.await_value("txbatch_committed_transactions_total", END - before)
            prometheus.await_value("txbatch_transaction_seconds_count", END - before)
            assert prometheus.query('up{job="txbatch"}') == [1.0]
            assert prometheus.query("sum(txbatch_failed_attempts_total)") == [0.0]
            figures = stop(second)
    assert (figures["last_txid"], figures["committed"]) == (END, END - before)
    assert stored(job, "{numbers}:numbers") == {"sum": END * (END + 1) // 2, "transactions": END}


def test_a_stranger_finds_the_cause_of_a_replay_and_of_the_end_in_the_log(job: JobFolder):
    code, output, said = ran(job, "job:priced", "--log-format", "json", "--max-pending", "1")
    assert (code, output) == (1, ""), said
    records = records_of(said)
    assert {record.get("topology", "numbers") for record in records} == {"numbers"}
    (replay,) = [record for record in records if record.get("txid") == 3]
    assert replay["level"] == "warning"
    assert "the price list is being written" in replay["reason"]
    assert replay["attempt"].startswith("3:")
    assert replay["wave"] > 0
    end = records[-1]
    assert (end["level"], end["txid"], end["component"], end["exit_code"]) == ("error", 5, "check", 1)
    assert "ValueError: number 5 has no price" in end["details"]
    assert 'raise ValueError("number 5 has no price")' in end["details"]
    assert stored(job, "{numbers}:numbers") == {"sum": 10, "transactions": 4}
