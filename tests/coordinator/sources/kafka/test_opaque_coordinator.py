"""When an opaque Kafka source is ready, and when it has ended, on a scripted topic."""

from __future__ import annotations

import pytest

from coordinator.sources.kafka.opaque_spout import OpaqueTopicCoordinator
from coordinator.sources.kafka.starting_point import Bounds
from coordinator.spouts.input_change import FormerInput
from state.errors import FailedException
from tests.support.kafka.looked_at import ScriptedTopic


class Asked:
    """A coordinator with its clock."""

    def __init__(self, topic, *, is_continuous=False):
        self.now = 100.0
        self.it = OpaqueTopicCoordinator(
            topic, "t", messages_per_partition=10, is_continuous=is_continuous, clock=lambda: self.now
        )

    def is_exhausted(self, pending, **positions):
        return self.it.is_exhausted({int(name[1:]): ["id", at] for name, at in positions.items()}, pending)


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
    asked.now += 60
    assert asked.is_exhausted(0, p0=5)
    assert asked.it.is_finite()


def test_a_continuous_run_is_ready_while_more_is_there_than_is_under_way():
    topic = ScriptedTopic(p0=5)
    asked = Asked(topic, is_continuous=True)
    assert not asked.is_exhausted(0, p0=5)
    assert not asked.it.is_ready()
    topic.bounds[0] = Bounds(0, 30)
    asked.now += 60
    assert not asked.is_exhausted(2, p0=5)
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


def test_progress_counts_what_is_read_of_what_was_there():
    asked = Asked(ScriptedTopic(p0=30, p1=10))
    assert asked.it.progress({}) == 0.0
    assert asked.it.progress({0: ["id", 20]}) == 0.5
    assert asked.it.progress({0: ["id", 40], 1: ["id", 10]}) == 1.0


def test_positions_of_another_topic_make_it_impossible_to_continue():
    asked = Asked(ScriptedTopic(p0=5))
    same = asked.it.compare(FormerInput("f", True, 1, positions={0: ["id", 3]}))
    assert same is not None
    assert same.impossible == ()
    changed = asked.it.compare(FormerInput("f", False, 1, positions={0: ["another", 3]}))
    assert changed is not None
    assert "its id was another and is id now" in changed.impossible[0]
    assert asked.it.compare(FormerInput("f", False, 1, positions={0: {"offset": 3}})) is None
