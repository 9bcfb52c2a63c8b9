"""Brokers that change between any two calls, drivers and workers that die there: each offset counts once, or it stops.

One body for every kind of transactional spout. The truth is kept by the brokers: an offset that is not counted was
deleted by them, or the run has ended with a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator import LocalCluster, RunOptions
from coordinator.plain.kafka.offset_record import OffsetRecord
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaSpout, KafkaTopic, KafkaTransactionalSpout, RetryRules
from state import ListState, SourceError, TransactionError, UserCodeError
from tests.support.kafka.lying_brokers import BENIGN, SERVERS, TOPIC, Lie, LyingBrokers, Struck, forget_workers
from tests.support.kafka.messages import context
from tests.support.kafka.scripted_topic import Emissions
from tests.support.runs.collecting import Collecting
from tests.support.sources.growing_folder import Crash
from tests.support.topologies.components import collecting

TURNS_MAX, TURN_S = 160, 5
"""One run is given 800 s: longer than two waits of ours, one after the other."""
RUNS_MAX = 3


class Keep(Collecting):
    messages = ListState("messages", value=bytes)

    def finish_batch(self):
        self.messages.extend(tup["value"] for tup in self.tuples)


def transactional(start, on_gone):
    return KafkaTransactionalSpout(KafkaTopic(SERVERS, TOPIC, start=start, on_gone=on_gone), messages_per_batch=4)


def opaque(start, on_gone):
    return KafkaOpaqueSpout(KafkaTopic(SERVERS, TOPIC, start=start, on_gone=on_gone), messages_per_partition=2)


def run(brokers: LyingBrokers, cluster: LocalCluster, spout) -> TransactionError | None:
    """One run, to its end or its death; returns the error it ended with, None if it is done or died."""
    topology = collecting("lied_to", spout, Keep(), source="messages", tasks=2)
    try:
        made = cluster.submit(topology, options=RunOptions(max_spout_pending=3))
        for _ in range(TURNS_MAX):
            made.run_until_idle()
            if made.is_done:
                return None
            brokers.now_s += TURN_S
    except Crash:
        return None
    except UserCodeError:
        raise  # no name for what the brokers have done
    except TransactionError as error:
        return error
    finally:
        forget_workers()
    raise AssertionError(f"neither done nor ended after {TURNS_MAX * TURN_S} s: {made!r}")


def counted(cluster: LocalCluster) -> dict[tuple[int, int], list[int]]:
    """(how often the topic was made, partition) -> the offsets that were committed, ascending."""
    found = defaultdict(list)
    for message in cluster.client.lrange("{lied_to}:messages", 0, -1):
        made, partition, offset = map(int, message.split(b"/"))
        found[made, partition].append(offset)
    return {place: sorted(offsets) for place, offsets in sorted(found.items())}


def check(brokers: LyingBrokers, cluster: LocalCluster, on_gone: str) -> None:
    """Fails unless what is counted is of one topic, each offset once, and without a gap that retention did not make."""
    found = counted(cluster)
    assert len({made for made, _ in found}) <= 1, f"of two topics: {found}"
    for place, offsets in found.items():
        assert len(set(offsets)) == len(offsets), f"twice: {place} {offsets}"
        missing = set(range(offsets[0], offsets[-1])) - set(offsets)
        deleted = brokers.retired.get(place, 0) if on_gone == "earliest" else 0
        assert all(offset < deleted for offset in missing), f"left out: {place} {offsets}"


def play(make_spout, plan, start: str, on_gone: str) -> None:
    """Runs until the plan is played, then twice in peace."""
    brokers = LyingBrokers(plan)
    with brokers.installed(), LocalCluster() as cluster:
        for left in (*range(RUNS_MAX, 0, -1), 0, 0):
            if not left or not brokers.has_more():
                brokers.settle()
            error = run(brokers, cluster, make_spout(start, on_gone))
            check(brokers, cluster, on_gone)
        if set(brokers.struck) <= set(BENIGN):
            assert error is None, error
            for partition, log in enumerate(brokers.logs):
                offsets = counted(cluster).get((0, partition), [])
                assert len(offsets) == log.high if start == "earliest" else not offsets or offsets[-1] == log.high - 1


plans = st.lists(
    st.builds(Struck, after=st.integers(0, 12), lie=st.sampled_from(Lie), place=st.integers(0, 9)), max_size=8
)


MADE_AGAIN_AS_ONE_JOINS = [
    *(Struck(0, Lie.GROWS), Struck(5, Lie.GROWS, 1), Struck(12, Lie.IS_ANOTHER), Struck(0, Lie.JOINS)),
    Struck(6, Lie.IS_REMADE, 1),
]
"""A partition that has joined is looked for when the topic was made again since others of the batch were read."""


AWAY_TWICE = [Struck(0, Lie.LEADER), Struck(0, Lie.LEADER, 1), *[Struck(6, Lie.GROWS)] * 2, Struck(12, Lie.JOINS, 8)]
"""All partitions are away; once a run has read one that joins, it waits for the others as long again."""


@pytest.mark.parametrize("make_spout", [transactional, opaque])
@given(plan=plans, start=st.sampled_from(["earliest", "latest"]), on_gone=st.sampled_from(["fail", "earliest"]))
@example(plan=[Struck(12, Lie.IS_REMADE)], start="earliest", on_gone="fail")  # while a transaction is read
@example(plan=[Struck(5, Lie.LOSES_END, 6)], start="earliest", on_gone="fail")  # of what a finite run has left to read
@example(plan=MADE_AGAIN_AS_ONE_JOINS, start="earliest", on_gone="fail")
@example(plan=AWAY_TWICE, start="earliest", on_gone="fail")
def test_every_offset_counts_once_or_the_run_ends_by_name(make_spout, plan, start, on_gone):
    play(make_spout, plan, start, on_gone)


class Records:
    """The offsets a plain spout has stored, whose server takes calls at which a process may die too."""

    def __init__(self, brokers: LyingBrokers) -> None:
        self._brokers = brokers
        self.texts: dict[str, str] = {}

    def load(self, field: str) -> str | None:
        return self.texts.get(field)

    def save(self, texts: Mapping[str, str]) -> None:
        self._brokers.asked()
        self.texts |= texts

    def close(self) -> None:
        """Nothing is open."""


class PlainSpout(KafkaSpout):
    """A plain spout whose offsets are in memory."""

    def __init__(self, records: Records, **topic: Any) -> None:
        super().__init__(KafkaTopic(SERVERS, TOPIC, **topic), retries=RetryRules(0, 1, 0, None), store_every_ms=1)
        self._records = records

    def _offset_records(self, topology_id: str) -> Records:
        return self._records


def run_plain(brokers: LyingBrokers, spout: PlainSpout, done: set[bytes], draw: Random) -> SourceError | None:
    """One run of a plain spout, some of whose tuples fail; returns the error it ended with."""
    collector = Emissions()
    try:
        spout.open({}, context(), collector)
        for _ in range(60):
            collector.emitted.clear()
            spout.next_tuple()
            for (value,), tuple_id, _ in collector.emitted:
                if draw.random() < 0.2:
                    spout.fail(tuple_id)
                else:
                    done.add(value)
                    spout.ack(tuple_id)
            brokers.now_s += draw.choice((0, 1, 20))
        spout.close()
    except Crash:
        return None
    except SourceError as error:
        return error
    finally:
        forget_workers()
    return None


def check_plain(brokers: LyingBrokers, records: Records, done: set[bytes], begins: dict[int, int]) -> None:
    """Fails unless everything below a stored offset was done, or deleted by retention."""
    for record in map(OffsetRecord.from_text, records.texts.values()):
        first = begins.setdefault(record.partition, record.offset)
        if record.topic_id == f"id{brokers.made}":
            deleted = brokers.retired.get((brokers.made, record.partition), 0)
            left = [
                offset
                for offset in range(max(first, deleted), record.offset)
                if b"%d/%d/%d" % (brokers.made, record.partition, offset) not in done
            ]
            assert not left, f"stored {record} without {left}"


def play_plain(plan, start: str, on_gone: str, seed: int) -> None:
    brokers, done, draw = LyingBrokers(plan), set[bytes](), Random(seed)
    records, begins = Records(brokers), dict[int, int]() if start == "latest" else dict.fromkeys(range(20), 0)
    with brokers.installed():
        for left in (*range(RUNS_MAX, 0, -1), 0, 0, 0):
            if not left or not brokers.has_more():
                brokers.settle()
            older = dict(records.texts)
            error = run_plain(brokers, PlainSpout(records, start=start, on_gone=on_gone), done, draw)
            check_plain(brokers, records, done, begins)
            if left and older and draw.random() < 0.3:
                records.texts = older  # put back to what it was before the run
        if set(brokers.struck) <= set(BENIGN):
            assert error is None, error
            ends = {each.partition: each.offset for each in map(OffsetRecord.from_text, records.texts.values())}
            assert ends == {partition: log.high for partition, log in enumerate(brokers.logs)}


@given(plan=plans, start=st.sampled_from(["earliest", "latest"]), on_gone=st.sampled_from(["fail", "earliest"]))
def test_a_plain_spout_stores_no_offset_before_all_below_it_is_done(plan, start, on_gone):
    play_plain(plan, start, on_gone, seed=len(plan))
