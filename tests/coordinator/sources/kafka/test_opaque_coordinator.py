"""When an opaque Kafka source is ready, and when it has ended, on a scripted topic."""

from __future__ import annotations

import pytest

from coordinator import FormerInput, RunSoFar
from coordinator.sources.kafka import KafkaTopic
from coordinator.sources.kafka.opaque_coordinator import OpaqueTopicCoordinator
from coordinator.sources.kafka.starting_point import Bounds
from state import FailedException, SourceError
from tests.support.kafka.looked_at import ScriptedTopic
from tests.support.sources.reading import standing


class Asked:
    """A coordinator with its clock."""

    def __init__(self, topic, *, is_continuous=False, start="earliest"):
        self.now = 100.0
        self.it = OpaqueTopicCoordinator(
            topic,
            KafkaTopic("h:1", "t", start=start),
            messages_per_partition=10,
            is_continuous=is_continuous,
            clock=lambda: self.now,
            now_ms=lambda: 1_700_000_000_000,
        )

    def is_exhausted(self, pending, after_s=0.0, **positions):
        self.now += after_s
        self.it.run_so_far = RunSoFar(
            positions={int(name[1:]): ["id", at] for name, at in positions.items()}, ahead=pending
        )
        return self.it.is_exhausted()


def test_a_finite_run_starts_as_many_transactions_as_the_fullest_partition_takes():
    asked = Asked(ScriptedTopic(p0=25, p1=3))
    assert not asked.is_exhausted(0)
    assert not asked.is_exhausted(2)
    assert asked.is_exhausted(3)
    assert not asked.is_exhausted(0, p0=20, p1=3)
    assert asked.is_exhausted(1, p0=20, p1=3)
    assert asked.is_exhausted(0, p0=25, p1=3)


def test_what_arrives_meanwhile_does_not_keep_a_finite_run_from_its_end():
    topic = ScriptedTopic(p0=5)
    asked = Asked(topic)
    assert not asked.is_exhausted(0)
    topic.bounds[0] = Bounds(0, 500)
    assert asked.is_exhausted(0, p0=5, after_s=60)
    assert asked.it.is_finite()


def test_a_continuous_run_is_ready_while_more_is_there_than_is_under_way():
    topic = ScriptedTopic(p0=5)
    asked = Asked(topic, is_continuous=True)
    assert not asked.is_exhausted(0, p0=5)
    assert not asked.it.is_ready()
    topic.bounds[0] = Bounds(0, 30)
    assert not asked.is_exhausted(2, p0=5, after_s=60)
    assert asked.it.is_ready()
    assert not asked.is_exhausted(3, p0=5)
    assert not asked.it.is_ready()


def test_partitions_that_join_are_counted_in_and_brokers_that_are_away_fail_the_attempt():
    topic = ScriptedTopic(p0=5)
    asked = Asked(topic)
    assert asked.it.number_of_partitions() == 1
    topic.bounds[1] = Bounds(0, 5)
    asked.now += 60
    assert asked.it.number_of_partitions() == 2
    topic.is_away = True
    asked.now += 60
    with pytest.raises(FailedException, match="no broker answers"):
        asked.it.number_of_partitions()


def test_a_first_look_that_fails_is_repeated_every_five_seconds_and_given_up_after_five_minutes():
    for is_continuous in (False, True):
        topic = ScriptedTopic(p0=5)
        topic.is_away = True
        asked = Asked(topic, is_continuous=is_continuous)
        asks = (lambda it: it.is_exhausted(), lambda it: it.first_positions(), lambda it: it.progress())
        ends_at = asked.now + 299
        while asked.now < ends_at:
            for ask in asks[: 2 if is_continuous else 3]:
                with pytest.raises(FailedException, match="no broker answers"):
                    ask(asked.it)
            asked.now += 0.1
        assert topic.looks <= 61
        asked.now += 2
        with pytest.raises(SourceError, match="brokers have been away for 300 s: no broker answers"):
            asked.it.is_exhausted()


def test_brokers_that_are_away_end_a_continuous_run_too_once_everything_known_is_read():
    topic = ScriptedTopic(p0=5)
    asked = Asked(topic, is_continuous=True)
    assert not asked.is_exhausted(0, p0=5)
    topic.is_away = True
    with pytest.raises(FailedException, match="no broker answers"):
        asked.is_exhausted(0, p0=5, after_s=1)
    with pytest.raises(SourceError, match="brokers have been away for 300 s"):
        asked.is_exhausted(0, p0=5, after_s=301)


def test_a_partition_that_is_away_is_left_out_and_a_finite_run_waits_for_it_five_minutes_at_most():
    topic = ScriptedTopic(p0=25, p1=10)
    topic.away = {1: "it has no leader"}
    asked = Asked(topic)
    assert asked.it.first_positions() == {0: ["id", 0]}
    assert asked.it.number_of_partitions() == 2
    assert not asked.is_exhausted(2)
    assert asked.it.is_ready()
    assert not asked.is_exhausted(3)
    assert not asked.it.is_ready()
    with pytest.raises(FailedException, match="it has no leader"):
        asked.is_exhausted(0, p0=25)
    asked.now += 200
    topic.away = {}
    assert not asked.is_exhausted(0, p0=25)
    assert asked.it.is_ready()
    topic.away = {1: "it has no leader"}
    asked.now += 200
    asked.it.number_of_partitions()
    assert standing(asked.it, positions={0: ["id", 25]}).progress() == 1.0
    with pytest.raises(FailedException, match="it has no leader"):
        asked.is_exhausted(0, p0=25, p1=3)
    with pytest.raises(SourceError, match="brokers have been away for 300 s: it has no leader"):
        asked.is_exhausted(0, p0=25, p1=3, after_s=301)
    assert asked.is_exhausted(0, p0=25, p1=10), "what is read is not waited for"


def test_a_continuous_run_reads_on_however_long_a_partition_is_away():
    topic = ScriptedTopic(p0=5, p1=5)
    asked = Asked(topic, is_continuous=True)
    topic.away = {1: "it has no leader"}
    for _ in range(10):
        assert not asked.is_exhausted(0, p0=5, after_s=100)
        assert not asked.it.is_ready()
    topic.bounds[0] = Bounds(0, 6)
    assert not asked.is_exhausted(0, p0=5, after_s=100)
    assert asked.it.is_ready()


def test_one_look_that_fails_does_not_end_a_run_that_reads_on_without_a_partition():
    topic = ScriptedTopic(p0=5, p1=5)
    topic.away = {1: "it has no leader"}
    asked = Asked(topic, is_continuous=True)
    for _ in range(3):
        assert not asked.is_exhausted(0, p0=5)
        topic.is_away = True
        with pytest.raises(FailedException, match="no broker answers"):
            asked.is_exhausted(0, p0=5, after_s=10)
        topic.is_away = False
        assert not asked.is_exhausted(0, p0=5, after_s=10)
        asked.now += 86_400


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("earliest", {0: ["id", 0]}),
        ("latest", {0: ["id", 5], 1: ["id", {"since_ms": 1_700_000_000_000}]}),
        ("2026-01-01T00:00:00+00:00", {0: ["id", 5], 1: ["id", {"since_ms": 1_767_225_600_000}]}),
        ({0: 2, 1: 7}, {0: ["id", 2], 1: ["id", 7]}),
        ({0: 2}, {0: ["id", 2]}),
    ],
)
def test_where_a_topology_begins_is_fixed_also_for_a_partition_that_is_away(start, first):
    topic = ScriptedTopic(p0=5, p1=5)
    topic.away = {1: "it has no leader"}
    assert Asked(topic, start=start).it.first_positions() == first


def test_a_topology_that_has_begun_begins_nowhere_again():
    topic = ScriptedTopic(p0=5, p1=5)
    assert standing(Asked(topic, start="latest").it, positions={0: ["id", 3]}).first_positions() == {}
    assert standing(Asked(topic, start="latest").it, 3).first_positions() == {}


def test_progress_counts_what_is_read_of_what_was_there():
    asked = Asked(ScriptedTopic(p0=30, p1=10))
    assert standing(asked.it).progress() == 0.0
    assert standing(asked.it, positions={0: ["id", 20]}).progress() == 0.5
    assert standing(asked.it, positions={0: ["id", 40], 1: ["id", 10]}).progress() == 1.0


def test_positions_of_another_topic_make_it_impossible_to_continue():
    asked = Asked(ScriptedTopic(p0=5))
    same = asked.it.compare(FormerInput(fingerprint="f", is_same=True, last_txid=1, positions={0: ["id", 3]}))
    assert same is not None
    assert same.impossible == ()
    changed = asked.it.compare(FormerInput(fingerprint="f", is_same=False, last_txid=1, positions={0: ["another", 3]}))
    assert changed is not None
    assert "its id was another and is id now" in changed.impossible[0]
    assert (
        asked.it.compare(FormerInput(fingerprint="f", is_same=False, last_txid=1, positions={0: {"offset": 3}})) is None
    )


def test_a_log_that_ends_before_its_position_is_waited_for_a_moment_and_then_named():
    topic = ScriptedTopic(p0=10, p1=10)
    asked = Asked(topic, is_continuous=True)
    assert not asked.is_exhausted(0, p0=10, p1=0)
    topic.bounds[0] = Bounds(0, 5)
    for _ in range(3):
        with pytest.raises(
            FailedException, match="was read to offset 10, but its log ends at 5; the broker is asked again"
        ):
            asked.is_exhausted(0, p0=10, p1=0, after_s=10)
    with pytest.raises(SourceError, match="it has lost messages"):
        asked.is_exhausted(0, p0=10, p1=0, after_s=11)
