"""Cutting a scripted topic: when a transaction is ready, what is in it, and brokers that are away."""

from __future__ import annotations

import datetime as dt

import pytest

from coordinator import FormerInput
from coordinator.sources.kafka import KafkaTopic
from coordinator.sources.kafka.offset_ranges import OffsetCut, OffsetRange
from coordinator.sources.kafka.starting_point import Bounds, StartingPoint, require_within
from coordinator.sources.kafka.topic_coordinator import CuttingRules, TopicCoordinator
from coordinator.sources.kafka.transactional_spout import CutRecord
from state import FailedException, SourceError
from tests.support.kafka.looked_at import ScriptedTopic
from tests.support.sources.reading import standing


class Cutter:
    """A coordinator with its clock."""

    def __init__(self, topic, *, message_bytes=1.0, on_gone="fail", **rules):
        self.topic, self.now = topic, 100.0
        self.sampled: list[tuple[int, int]] = []
        defaults = {"messages": 10, "byte_count": 10**9, "linger_s": 1.0, "is_continuous": True}
        self.record = CutRecord()

        def sample(topic_id, partition, at):
            self.sampled.append((partition, at))
            return message_bytes

        self.it = TopicCoordinator(
            topic,
            KafkaTopic("h:1", "t", on_gone=on_gone),
            "topology",
            CuttingRules(**{**defaults, **rules}),
            message_bytes=sample,
            clock=lambda: self.now,
            note_cut=self.record.cut,
        )
        self.last, self.txid = None, 0
        standing(self.it).resume()

    def is_ready(self, after_s=0.0):
        self.now += after_s
        return self.it.is_ready()

    def cut(self, after_s=0.0):
        self.now += after_s
        self.txid += 1
        self.last = self.it.initialize_transaction(self.txid, self.last)
        return {each: (part.first, part.next) for each, part in OffsetCut.from_plain(self.last).ranges.items()}


def test_a_continuous_run_waits_a_moment_for_a_full_transaction():
    cutter = Cutter(ScriptedTopic(p0=3))
    assert not cutter.is_ready()
    assert not cutter.is_ready(after_s=0.9)
    assert cutter.is_ready(after_s=0.1)
    assert cutter.cut() == {0: (0, 3)}
    assert not cutter.is_ready()


def test_a_full_transaction_waits_for_nothing():
    assert Cutter(ScriptedTopic(p0=6, p1=4)).is_ready()


def test_brokers_are_asked_once_in_a_while_however_often_the_run_asks():
    topic = ScriptedTopic(p0=0)
    cutter = Cutter(topic)
    looks = topic.looks
    for _ in range(100):
        cutter.is_ready()
        cutter.now += 0.01
    assert topic.looks - looks <= 5


def test_what_is_known_is_cut_while_brokers_are_away_and_then_it_is_tried_again():
    topic = ScriptedTopic(p0=15)
    cutter = Cutter(topic)
    topic.is_away = True
    assert cutter.is_ready(after_s=10)
    assert cutter.cut() == {0: (0, 10)}
    cutter.is_ready(after_s=10)
    assert cutter.is_ready(after_s=10)
    assert cutter.cut() == {0: (10, 15)}
    with pytest.raises(FailedException, match="no broker answers"):
        cutter.is_ready(after_s=10)
    looks = topic.looks
    with pytest.raises(FailedException, match="no broker answers"):
        cutter.is_ready()
    assert topic.looks == looks, "they are not asked again at once"
    topic.is_away = False
    topic.bounds[0] = Bounds(0, 30)
    assert cutter.is_ready(after_s=10)


def test_brokers_that_stay_away_end_the_run():
    topic = ScriptedTopic(p0=0)
    cutter = Cutter(topic)
    topic.is_away = True
    for _ in range(3):
        with pytest.raises(FailedException):
            cutter.is_ready(after_s=149)
    with pytest.raises(SourceError, match="brokers have been away for 300 s: no broker answers"):
        cutter.is_ready(after_s=149)


def test_a_finite_run_leaves_partitions_that_join_to_the_next():
    topic = ScriptedTopic(p0=4)
    cutter = Cutter(topic, is_continuous=False)
    topic.bounds[1] = Bounds(0, 9)
    topic.bounds[0] = Bounds(0, 20)
    assert cutter.cut(after_s=10) == {0: (0, 4), 1: (0, 0)}
    assert standing(cutter.it, 1, cutter.last).is_exhausted()
    following = Cutter(topic, is_continuous=False)
    standing(following.it, 1, cutter.last).resume()
    following.txid, following.last = 1, cutter.last
    assert following.cut() == {0: (4, 9), 1: (0, 5)}


def test_the_size_of_messages_is_looked_at_now_and_then():
    cutter = Cutter(ScriptedTopic(p0=5000, p1=20), message_bytes=100.0, byte_count=400)
    assert sum(after - first for first, after in cutter.cut().values()) == 4
    assert cutter.it.estimated_bytes(cutter.last) == 400
    for _ in range(150):
        cutter.cut()
    assert len(cutter.sampled) == 2


def test_progress_goes_from_nothing_to_all():
    cutter = Cutter(ScriptedTopic(p0=20), is_continuous=False)
    assert standing(cutter.it).progress() == 0.0
    cutter.cut()
    assert standing(cutter.it, 1, cutter.last).progress() == 0.5
    cutter.cut()
    assert standing(cutter.it, 1, cutter.last).progress() == 1.0


def test_metadata_of_another_source_is_refused_before_anything_is_cut():
    cutter = Cutter(ScriptedTopic(p0=20))
    with pytest.raises(SourceError, match="run with another source before"):
        standing(cutter.it, 3, [["lines.txt", 0, 10]]).resume()
    with pytest.raises(SourceError, match="where in topic 't' that ended is not stored"):
        standing(cutter.it, 3, None).resume()


def test_a_topic_made_again_is_said_by_the_comparison_and_under_the_run():
    topic = ScriptedTopic(p0=20)
    cutter = Cutter(topic)
    cutter.cut()
    same = cutter.it.compare(FormerInput(fingerprint="f", is_same=True, last_txid=1, last=cutter.last))
    assert same is not None
    assert same.impossible == ()
    topic.name = "another"
    changed = Cutter(topic).it.compare(FormerInput(fingerprint="f", is_same=False, last_txid=1, last=cutter.last))
    assert changed is not None
    (sentence,) = changed.impossible
    assert "its id was id and is another now" in sentence
    with pytest.raises(SourceError, match="made again"):
        cutter.cut(after_s=10)


def test_what_is_durable_is_remembered_until_it_was_told():
    record = CutRecord()
    for txid in (1, 2, 3):
        record.cut(txid, {0: 10 * txid})
    assert record.durable(2) == {0: 20}
    assert record.durable(1) is None
    assert record.durable(3) == {0: 30}


def test_an_offset_that_is_gone_is_left_out_and_counted_by_policy():
    topic = ScriptedTopic(p0=20)
    cutter = Cutter(topic, on_gone="earliest")
    cutter.cut()
    topic.bounds[0] = Bounds(15, 20)
    assert cutter.cut(after_s=10) == {0: (15, 20)}
    assert OffsetCut.from_plain(cutter.last) == OffsetCut("id", {0: OffsetRange(15, 20)}, 5)


def test_a_log_that_is_shorter_for_a_moment_is_waited_for_and_one_that_stays_so_is_named():
    topic = ScriptedTopic(p0=20, p1=0)
    cutter = Cutter(topic)
    cutter.cut()
    topic.bounds = {0: Bounds(0, 5), 1: Bounds(0, 50)}
    with pytest.raises(FailedException, match="read to offset 10, but its log ends at 5; the broker is asked again"):
        cutter.cut(after_s=10)
    topic.bounds[0] = Bounds(0, 20)
    cutter.now += 10
    last = cutter.it.initialize_transaction(2, cutter.last)
    topic.bounds[0] = Bounds(0, 5)
    for _ in range(4):
        cutter.now += 10
        with pytest.raises(FailedException):
            cutter.it.initialize_transaction(3, last)
    cutter.now += 10
    with pytest.raises(SourceError, match="it has lost messages"):
        cutter.it.initialize_transaction(3, last)


@pytest.mark.parametrize(
    ("offsets", "story"),
    [
        (
            {0: 21},
            "start gives offset 21 of partition 0 of topic 't', but its log ends at 20: give an offset up to there",
        ),
        ({1: 0}, "start names partition 1, but topic 't' has 1 partitions; leave it out"),
    ],
)
def test_a_place_to_start_that_is_not_there_is_not_called_a_loss(offsets, story):
    with pytest.raises(SourceError, match=story):
        StartingPoint(offsets=offsets).first_offsets("t", {0: Bounds(3, 20)})
    assert StartingPoint(offsets={0: 20}).first_offsets("t", {0: Bounds(3, 20)}) == {0: 20}


@pytest.mark.parametrize(
    "given", ["1969-12-31T23:59:59+00:00", "1970-01-01T00:00:00+00:00", "0001-01-01T00:00:00+00:00"]
)
def test_a_start_before_all_messages_is_the_first_message(given):
    start = StartingPoint.of(given)
    assert start == StartingPoint.of(dt.datetime.fromisoformat(given)) == StartingPoint.of("earliest")
    assert start.first_offsets("t", {0: Bounds(3, 20)}) == {0: 3}


def test_a_position_within_an_open_transaction_is_not_beyond_the_log():
    require_within("t", 0, 9, Bounds(0, 5, 9))
    with pytest.raises(SourceError, match="was read to offset 10, but its log ends at 9: it has lost messages"):
        require_within("t", 0, 10, Bounds(0, 5, 9))
