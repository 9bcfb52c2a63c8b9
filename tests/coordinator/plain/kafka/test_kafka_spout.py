"""The plain spout on a scripted topic: every trap of Storm's, and that each loss is said and counted."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

import pytest

from coordinator.plain.kafka.kafka_spout import KafkaSpout
from coordinator.plain.kafka.retry_manager import RetryRules
from coordinator.sources.kafka.client_settings import FromEnvironment
from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.records.plain_formats import TextLine
from state.errors import SourceError, TopologyError
from tests.support.kafka.messages import numbers
from tests.support.kafka.scripted_topic import Played, ScriptedLog, World

AT_ONCE = RetryRules(0, 1, 0, None)


def world_of(*values, partitions=1):
    world = World(partitions)
    world.logs[0].append(*values)
    return world


def letters(*values, **options):
    """A spout that makes a tuple of each letter of a message."""
    split = options.pop("split", lambda row: [[letter] for letter in row[0]])
    return Played(world_of(*values), record_format=TextLine("value"), split=split, **options)


def left_by(world, asked, *acked, **options):
    """A run has been here, which emitted so many messages and ended after these were acked."""
    played = Played(world, **options)
    played.ask(asked)
    played.ack(*acked)
    played.spout.close()


# What Storm's manager does --------------------------------------------------------------------------------------


def test_partitions_take_turns():
    world = world_of(b"a0", b"a1", partitions=2)
    world.logs[1].append(b"b0", b"b1")
    assert sorted(Played(world).ask(2)) == [b"a0", b"b0"]


def test_a_restart_begins_where_everything_was_done():
    world = world_of(*b"a b c d".split())
    left_by(world, 4, b"a", b"c")
    assert Played(world).ask(4) == [b"b", b"c", b"d"]


def test_what_is_stored_is_json_with_topic_offset_and_instance():
    world = world_of(b"a")
    left_by(world, 1, b"a")
    assert json.loads(world.stored["source:t:0"]) == {
        "topology": {"id": "one", "name": "kafka_test"},
        "offset": 1,
        "partition": 0,
        "broker": "nowhere:9092",
        "topic": "t",
        "topic_id": "first",
    }


def test_offsets_are_stored_every_so_often_and_not_before():
    world = world_of(b"a", b"b")
    played = Played(world, store_every_ms=2000)
    played.ask(2)
    played.ack(b"a")
    world.ms = 1999
    played.ask()
    assert json.loads(world.stored["source:t:0"])["offset"] == 0
    world.ms = 2000
    played.ask()
    assert json.loads(world.stored["source:t:0"])["offset"] == 1


@pytest.mark.parametrize(
    ("again", "seen"),
    [
        ({}, [b"b"]),
        ({"force_from_start": True}, [b"b"]),
        ({"instance_id": "two"}, [b"b"]),
        ({"instance_id": "two", "force_from_start": True}, [b"a", b"b"]),
    ],
)
def test_only_another_instance_that_is_forced_begins_at_the_start(again, seen):
    world = world_of(b"a", b"b")
    left_by(world, 1, b"a")
    assert Played(world, **again).ask(2) == seen


def test_a_failed_message_is_emitted_again_after_its_wait_and_before_what_is_new():
    world = world_of(b"a", b"b", b"c")
    played = Played(world, retries=RetryRules(100, 2, 1000, None), max_uncommitted=2)
    played.ask(2)
    played.fail(b"a")
    assert played.ask() == []
    world.ms = 100
    played.ack(b"b")
    assert played.ask(2) == [b"a"]
    played.ack(b"a")
    assert played.ask() == [b"c"]


# Its traps, closed -------------------------------------------------------------------------------------------


def test_trap_far_behind_nothing_under_way_is_dropped_however_small_max_behind_is():
    world = world_of(*numbers(0, 2000))
    played = Played(world, max_behind=5000, retries=AT_ONCE)
    played.ask(1500)
    world.logs[0].append(*[b"more"] * 9000)  # far further behind now than max_behind
    played.fail(b"0")
    assert b"0" in played.ask(600)  # after what was fetched before
    assert played.completed() == 0
    assert "lost_offsets" not in played.spout.counts


def test_trap_far_behind_at_the_start_is_left_out_only_if_asked_for_and_counted(caplog):
    world = world_of(b"a")
    left_by(world, 0)
    world.logs[0].append(*[b"x"] * 100)
    assert Played(world).ask() == [b"a"]
    late = Played(world, max_behind=50)
    assert late.ask() == []
    assert late.spout.counts["lost_offsets"] == 101
    assert "101 offsets of partition 0 of topic 't' are left out" in caplog.text


def test_trap_a_message_never_acked_bounds_what_is_uncommitted_and_holds_up_no_retry():
    world = world_of(*numbers(0, 100))
    played = Played(world, max_uncommitted=10, retries=AT_ONCE)
    assert len(played.ask(50)) == 10
    played.ack(*numbers(1, 9))
    assert played.ask(50) == []  # message 0 holds the bound
    assert played.spout.statistics()[0]["uncommitted"] == 10
    played.fail(b"9")
    assert played.ask(2) == [b"9"]
    played.fail(b"0")
    assert played.ask(2) == [b"0"]
    played.ack(b"0")
    assert len(played.ask(50)) == 9


def test_trap_a_message_that_holds_up_its_partition_is_named_once(caplog):
    world = world_of(*numbers(0, 20))
    played = Played(world, max_uncommitted=5, store_every_ms=1000)
    for world.ms in range(0, 6000, 500):
        played.ask(3)
    played.ack(*numbers(1, 5))
    assert caplog.text.count("partition 0 of topic 't' waits") == 1
    assert "the lowest at offset 0;" in caplog.text


def test_trap_only_a_message_under_way_holds_up_its_partition(caplog):
    world = world_of(*numbers(0, 20))
    played = Played(world, max_uncommitted=5, store_every_ms=1000, retries=RetryRules(60_000, 1, 60_000))
    played.ask()  # one under way, four waiting to be emitted
    played.ack(b"0")
    assert played.spout.statistics()[0]["waiting"] == 4
    for world.ms in range(1000, 6000, 1000):
        played.spout._set.store()
    played.ask(10)
    played.fail(b"1")  # it waits for its next try, and its bolt has failed it
    for world.ms in range(6000, 9000, 1000):
        played.spout._set.store()
    assert "waits" not in caplog.text


def test_trap_the_bound_is_used_up_though_some_messages_wait():
    played = Played(world_of(*numbers(0, 20)), max_uncommitted=12)
    manager = played.spout._set.manager(0)
    assert manager is not None
    manager.fetched(0, list(range(6)), 6, 0)
    assert manager.room() == 6
    assert manager.held_up_by() is None


def test_trap_out_of_range_stops_unless_a_policy_says_otherwise():
    world = world_of(b"a", b"b", b"c", b"d")
    left_by(world, 1)
    world.logs[0].delete_before(3)
    with pytest.raises(SourceError, match=r"offsets 0 to 2 of partition 0 of topic 't' are gone from the log"):
        Played(world).ask()


@pytest.mark.parametrize(("policy", "seen", "lost"), [("earliest", [b"d"], 3), ("latest", [], 4)])
def test_trap_out_of_range_at_the_start_goes_by_policy_and_is_counted(policy, seen, lost):
    world = world_of(b"a", b"b", b"c", b"d")
    left_by(world, 0)
    world.logs[0].delete_before(3)
    played = Played(world, on_gone=policy)
    assert played.ask(2) == seen
    assert played.spout.counts["lost_offsets"] == lost


def test_trap_a_reset_purges_failed_pending_and_waiting_together():
    world = world_of(*b"a b c d".split())
    played = Played(world, retries=AT_ONCE, on_gone="earliest")
    played.ask(2)  # a and b under way, c and d waiting
    played.fail(b"a")
    played.ask(2)
    world.logs[0].delete_before(4)
    world.logs[0].append(b"e")
    played.fail(b"c")
    assert played.ask() == []
    assert played.ask() == [b"e"]
    played.ack(b"b", b"d", b"e")  # late acks of what is void change nothing
    assert played.completed() == 5
    counts = {"number_acked": 1, "number_failed": 2, "completed_to": 5, "emitted_to": 5}
    left = dict.fromkeys(("uncommitted", "under_way", "failed", "waiting"), 0)
    assert played.spout.statistics()[0] == counts | left
    assert played.spout.counts["lost_offsets"] == 2


def test_trap_only_the_failed_tuple_of_several_is_emitted_again_and_the_last_ack_completes_the_message():
    played = letters(b"abc", retries=AT_ONCE)
    assert played.ask() == ["a", "b", "c"]
    played.fail("b")
    assert played.ask() == ["b"]
    played.ack("a", "b")
    assert played.completed() == 0
    played.ack("c")
    assert played.completed() == 1


def test_trap_records_of_two_topics_and_of_two_spouts_are_apart():
    world = world_of(b"a")
    left_by(world, 0)
    left_by(world, 0, spout_id="other")
    assert sorted(world.stored) == ["other:t:0", "source:t:0"]


def test_trap_a_topic_made_again_is_named_and_not_read_at_old_offsets():
    world = world_of(b"a")
    left_by(world, 0)
    world.topic_id = "second"
    with pytest.raises(SourceError, match="its id was first and is second now"):
        Played(world)
    assert Played(world, instance_id="two", force_from_start=True).ask() == [b"a"]


def test_a_topic_whose_partitions_are_not_listed_yet_is_named_before_anything_is_stored():
    world = World()
    world.unlisted = {0}
    with pytest.raises(SourceError, match="the spout cannot begin: brokers list no partition yet of the topic with id"):
        Played(world)
    assert world.saves == 0
    world.unlisted = set()
    assert Played(world).world.saves


def test_a_failed_message_that_compaction_removed_holds_up_nothing():
    world = world_of(b"a", b"b")
    played = Played(world, retries=AT_ONCE)
    played.ask(2)
    played.ack(b"b")
    played.fail(b"a")
    del world.logs[0].values[0]
    assert played.ask() == []
    assert played.completed() == 2


def test_a_log_that_lost_its_end_stops_or_starts_over_and_late_acks_of_it_are_void():
    world = world_of(b"a", b"b", b"c")
    played = Played(world, on_gone="earliest")
    played.ask(3)
    old = dict(played.ids())
    world.logs[0].high = 1
    world.logs[0].values = {0: b"a"}
    assert played.ask() == []
    world.logs[0].append(b"B")
    assert played.ask() == [b"B"]
    played.spout.ack(old[b"b"])
    assert played.completed() == 1
    played.ack(b"B")
    assert played.completed() == 2


# Retries that are used up --------------------------------------------------------------------------------------


def test_a_message_given_up_stops_the_run_by_default_with_its_place():
    played = Played(world_of(b"a"), retries=RetryRules(0, 1, 0, 1))
    played.ask()
    played.fail(b"a")
    played.ask()
    with pytest.raises(SourceError, match=r"t\[0\] at offset 0 is given up: a tuple of it failed 2 times"):
        played.fail(b"a")
    assert played.completed() == 0


def test_retries_are_counted_by_tuple():
    played = letters(b"ab", retries=RetryRules(0, 1, 0, 1), on_give_up="skip")
    assert played.ask() == ["a", "b"]
    for value in "ab":
        played.fail(value)
        assert played.ask() == [value]
    assert played.spout.counts["given_up"] == 0
    played.fail("b")
    assert (played.spout.counts["given_up"], played.completed()) == (1, 0)
    played.fail("a")
    assert (played.spout.counts["given_up"], played.completed()) == (2, 1)


def test_two_tuples_of_a_message_that_fail_together_have_both_failed_once():
    played = letters(b"ab", retries=RetryRules(0, 1, 0, 1))
    played.ask()
    played.fail("a", "b")
    assert played.ask() == ["a", "b"]
    played.ack("a")
    with pytest.raises(SourceError, match="a tuple of it failed 2 times"):
        played.fail("b")


@pytest.mark.parametrize("parts", [[], ["a"], ["a", "b", "c"]])
def test_a_split_that_makes_another_number_of_tuples_on_a_retry_is_named(parts):
    made = iter([["a", "b"], parts])
    played = letters(b"ab", split=lambda row: [[letter] for letter in next(made)], retries=AT_ONCE)
    played.ask()
    played.fail("b")
    with pytest.raises(
        SourceError, match=rf"made {len(parts)} tuples from .* t\[0\] at offset 0, but 2 when it was read before"
    ):
        played.ask()


def test_a_message_given_up_may_be_skipped_and_is_counted(caplog):
    played = Played(world_of(b"a"), retries=RetryRules(0, 1, 0, 0), on_give_up="skip")
    played.ask()
    played.fail(b"a")
    assert played.completed() == 1
    assert played.spout.counts["given_up"] == 1
    assert "t[0] at offset 0 is given up" in caplog.text


def test_a_dead_letter_is_done_only_once_it_is_acked():
    played = Played(world_of(b"a"), retries=RetryRules(0, 1, 0, 0), on_give_up="dead_letter")
    played.ask()
    (tuple_id,) = played.ids().values()
    played.fail(b"a")
    for _ in range(2):
        played.spout.next_tuple()
        assert played.collector.emitted[-1] == (
            ["t[0] at offset 0", b"a", "a tuple of it failed 1 times"],
            tuple_id,
            "dead_letters",
        )
        assert played.completed() == 0
        played.spout.fail(tuple_id)
    played.spout.next_tuple()
    played.spout.ack(tuple_id)
    assert played.completed() == 1


@pytest.mark.parametrize(("policy", "seen"), [("skip", ["ok"]), ("dead_letter", ["t[0] at offset 0", "ok"])])
def test_bad_records_go_by_policy(policy, seen):
    played = Played(world_of(b"\xff", b"ok"), record_format=TextLine("value"), on_bad_record=policy)
    assert played.ask(2) == seen
    assert played.spout.counts["bad_records"] == 1
    played.ack(*seen)
    assert played.completed() == 2


def test_a_bad_record_stops_the_run_by_default():
    with pytest.raises(SourceError, match=r"t\[0\] at offset 0 is bad: byte 0xff at position 0 is not valid UTF-8"):
        letters(b"\xff").ask()


def test_a_message_of_which_no_tuple_is_made_is_done_at_once():
    played = letters(b"", b"a")
    played.ask()
    assert played.completed() == 1


# Partitions, secrets, whole runs -------------------------------------------------------------------------------


def test_a_partition_that_joins_is_read_from_its_first_message_after_a_latest_start():
    world = world_of(b"old")
    played = Played(world, start="latest")
    assert played.ask() == []
    world.logs[1] = ScriptedLog()
    world.logs[1].append(b"new")
    world.ms = 60_000
    assert played.ask(2) == [b"new"]
    played.spout.close()
    world.logs[2] = ScriptedLog()
    world.logs[2].append(b"newer")
    assert b"newer" in Played(world, start="latest").ask(3)


def grown_world():
    world = world_of(b"old", b"older", partitions=2)
    world.logs[1].append(*b"a b c".split())
    return world


def test_a_partition_that_joined_between_runs_is_read_by_whichever_task_from_its_first_message():
    world = world_of(b"old")
    for task in range(2):
        Played(world, task, 2, start="latest").spout.close()
    world.logs[1] = grown_world().logs[1]
    assert Played(world, 0, 2, start="latest").ask() == []
    assert Played(world, 1, 2, start="latest").ask(4) == [b"a", b"b", b"c"]


def test_where_every_partition_begins_is_stored_by_the_first_task_at_once():
    world = grown_world()
    Played(world, 0, 2, start="latest")  # and the run dies before the other task has opened
    world.logs[1].append(b"d")
    world.logs[0].append(b"new")
    assert Played(world, 0, 2, start="latest").ask(2) == [b"new"]
    assert Played(world, 1, 2, start="latest").ask(2) == [b"d"]


def test_being_far_behind_counts_for_no_task_of_a_first_run():
    world = world_of(*[b"x"] * 100, partitions=2)
    world.logs[1].append(*[b"y"] * 100)
    assert Played(world, 0, 2, max_behind=10).ask() == [b"x"]
    assert Played(world, 1, 2, max_behind=10).ask() == [b"y"]


def test_a_start_that_is_forced_begins_where_the_start_says_and_not_at_the_first_message():
    world = grown_world()
    for task in range(2):
        Played(world, task, 2).spout.close()
    for task in range(2):
        assert Played(world, task, 2, start="latest", instance_id="two", force_from_start=True).ask() == []


def test_a_partition_that_is_listed_late_is_read_on_from_its_record():
    world = grown_world()
    left_by(world, 5, *b"old older a b".split())
    world.unlisted = {1}
    played = Played(world)
    assert played.ask() == []
    world.unlisted = set()
    world.ms += 60_000
    assert played.ask(2) == [b"c"]
    assert json.loads(world.stored["source:t:1"])["offset"] == 2


def test_a_partition_that_goes_away_stops_no_other_and_is_looked_for_later():
    world = world_of(b"a")
    played = Played(world)
    world.logs[1] = ScriptedLog()
    world.logs[1].append(b"b")
    world.away = {0: "it has no leader"}
    world.ms += 60_000
    assert played.ask(2) == [b"a", b"b"]
    world.logs[0].delete_before(5)
    assert played.ask() == []


def test_a_topic_that_may_be_missing_is_refused():
    waited_for = KafkaTopic("broker:9092", "t", missing="wait")
    with pytest.raises(TopologyError, match="missing='wait' of topic 't' is for transactional topologies"):
        KafkaSpout(waited_for, redis="redis://h")


def test_a_password_for_redis_is_taken_by_reference_only():
    with pytest.raises(TopologyError, match="holds a password") as refused:
        KafkaSpout(KafkaTopic("h:1", "t"), redis="redis://:hunter22@h:6379")
    assert "hunter22" not in str(refused.value)
    assert b"hunter22" not in pickle.dumps(KafkaSpout(KafkaTopic("h:1", "t"), redis=FromEnvironment("R")))


@pytest.mark.parametrize("seed", range(40))
def test_every_message_is_processed_at_least_once_whatever_fails_is_late_or_restarts(seed):
    random = Random(seed)
    world = World(2)
    values = numbers(0, 120)
    for number, value in enumerate(values):
        world.logs[number % 2].append(value)
        if random.random() < 0.2:
            world.logs[number % 2].high += random.randint(1, 3)  # a marker, or what compaction removed
    done: set[bytes] = set()
    while len(done) < len(values):
        played = Played(world, retries=RetryRules(1, 2, 20, None), max_uncommitted=random.randint(1, 15))
        under_way: dict[Any, bytes] = {}
        for _ in range(random.randint(5, 400)):
            world.ms += random.choice([0, 0, 1, 5])
            before = len(played.collector.emitted)
            played.spout.next_tuple()
            under_way |= {each[1]: each[0][0] for each in played.collector.emitted[before:]}
            assert all(each["uncommitted"] <= 15 for each in played.spout.statistics().values())
            while under_way and random.random() < 0.6:
                tuple_id = random.choice(list(under_way))
                value = under_way.pop(tuple_id)
                if random.random() < 0.3:
                    played.spout.fail(tuple_id)
                else:
                    done.add(value)
                    played.spout.ack(tuple_id)
        if random.random() < 0.5:
            played.spout.close()  # else it was killed
    assert done == set(values)
    assert world.stored.keys() == {"source:t:0", "source:t:1"}
