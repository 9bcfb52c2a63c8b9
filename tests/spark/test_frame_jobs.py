"""Jobs over shuffled frames cost few calls into the Java process, and carry whatever a stage was shipped with."""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass

import pytest

from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source

pytestmark = pytest.mark.spark


@dataclass(frozen=True, slots=True)
class Spread:
    """Sends as many bytes to each partition of the next stage."""

    payload: bytes
    partition_count: int

    def __call__(self, partition, records):
        return [(target, self.payload) for target in range(self.partition_count)]


def lengths(partition, records):
    """What arrived in each partition."""
    return [(partition, target, len(payload)) for target, payload in records]


def own_pid(partition, records):
    """The worker that runs a partition."""
    return [os.getpid()]


@pytest.fixture
def context(contexts):
    return contexts.open()


def seeds(context):
    return Frames(Source.of(context.parallelize([None] * 2, 2)))


@pytest.fixture
def calls(monkeypatch):
    """Names of the commands that the test's own thread sends to Java."""
    from py4j.java_gateway import GatewayClient

    sent: list[str] = []
    send = GatewayClient.send_command
    tested = threading.current_thread()

    def noting(client, command, *rest, **more):
        if threading.current_thread() is tested and not command.startswith("m\n"):  # not what the collector releases
            sent.append(" ".join(command.split("\n")[:3:2]))
        return send(client, command, *rest, **more)

    monkeypatch.setattr(GatewayClient, "send_command", noting)
    return sent


def run(jobs, context, payload):
    """One job of two stages; what arrived, and the shuffle."""
    shuffled = jobs.shuffled(seeds(context).then(Spread(payload, 3)), 3)
    return jobs.run(Frames(shuffled, (lengths,)), range(3)), shuffled


def test_frames_arrive_in_the_partitions_they_name(context):
    arrived, shuffled = run(FrameJobs(context), context, b"frame")
    shuffled.delete_shuffle_files()

    assert Counter(arrived) == {(target, target, 5): 2 for target in range(3)}


def test_a_stage_may_be_shipped_with_more_than_spark_takes_in_one_piece(context):
    arrived, shuffled = run(FrameJobs(context), context, os.urandom(3_000_000))
    shuffled.delete_shuffle_files()

    assert Counter(arrived) == {(target, target, 3_000_000): 2 for target in range(3)}


def test_only_the_partitions_that_are_asked_for_are_run(context):
    jobs = FrameJobs(context)
    shuffled = jobs.shuffled(seeds(context).then(Spread(b"frame", 3)), 3)

    assert jobs.run(Frames(shuffled, (lengths,)), [2]) == [(2, 2, 5)] * 2
    shuffled.delete_shuffle_files()


def test_a_later_job_of_two_stages_costs_few_calls_into_java(context, calls):
    jobs = FrameJobs(context)
    _, first = run(jobs, context, b"frame")
    source = seeds(context)
    calls.clear()

    shuffled = jobs.shuffled(source.then(Spread(b"frame", 3)), 3)
    jobs.run(Frames(shuffled, (lengths,)), range(3))

    made = list(calls)
    for finished in (first, shuffled):
        finished.delete_shuffle_files()
    assert len(made) <= 14, made


def test_workers_serve_many_jobs(context):
    jobs = FrameJobs(context)
    stages = seeds(context).then(own_pid)

    workers = {pid for _ in range(6) for pid in jobs.run(stages, range(2))}

    assert len(workers) <= 3
