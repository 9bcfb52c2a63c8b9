"""`KafkaOpaqueSpout` on a real broker: exactly once though attempts read differently."""

from __future__ import annotations

import time

import pytest

from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaTopic
from coordinator.sources.kafka.worker_readers import worker_readers
from state import SourceError, TransactionAttempt
from tests.support.kafka.messages import KafkaTransaction, Rows, context, delete_before, numbers, produce, run_to_end

pytestmark = pytest.mark.kafka


def attempt(spout, last, txid=1, attempt_id=1):
    """Emits one partition's batch, if `last` is None the first one of a new partition: the values, and the position."""
    task, rows = context(), Rows()
    emitter = spout.get_emitter({}, task)
    tried = TransactionAttempt(txid, attempt_id)
    if last is None:
        last = emitter.emit_partition_batch(tried, rows, 0, None)
        assert not rows.rows, "its position is stored first"
    position = emitter.emit_partition_batch(tried, rows, 0, last)
    emitter.finish_batch(tried)
    emitter.close()
    return [row[0] for row in rows.rows], position, task.counters


@pytest.mark.nightly
def test_a_batch_starts_at_the_position_and_a_replay_may_read_more(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 5))
    spout = KafkaOpaqueSpout(KafkaTopic(broker.address, topic), messages_per_partition=8)
    values, position, _ = attempt(spout, None)
    assert (values, position[1]) == (numbers(0, 5), 5)
    produce(broker.address, topic, numbers(5, 20))
    values, position, _ = attempt(spout, None, attempt_id=2)
    assert (values, position[1]) == (numbers(0, 8), 8)
    values, position, _ = attempt(spout, position, txid=2)
    assert (values, position[1]) == (numbers(8, 16), 16)


def test_a_batch_ends_with_the_message_that_reaches_the_bytes(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, [b"x" * 1000] * 5000)
    values, position, _ = attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, topic), bytes_per_partition=1), None)
    assert len(values) == position[1] <= 1024


def test_an_empty_partition_gets_a_position_all_the_same(broker, make_topic):
    values, position, _ = attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, make_topic())), None)
    assert (values, position[1]) == ([], 0)


def test_markers_at_the_end_are_passed_so_that_the_run_ends(broker, make_topic):
    topic = make_topic()
    transaction = KafkaTransaction(broker.address, topic)
    transaction.write(topic, numbers(0, 3))
    transaction.abort()
    values, position, _ = attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, topic)), None)
    assert (values, position[1]) == ([], 4)


def test_a_position_that_is_gone_goes_by_policy(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 20))
    _, position, _ = attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, topic), messages_per_partition=5), None)
    delete_before(broker, topic, 12)

    def read(policy):
        worker_readers().close()  # what was read ahead is not gone
        return attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, topic, on_gone=policy)), position, txid=2)

    with pytest.raises(SourceError, match=r"offsets 5 to 11 of partition 0"):
        read("fail")
    values, _, counters = read("earliest")
    assert (values, counters["lost_offsets"]) == (numbers(12, 20), 7)
    values, after, counters = read("latest")
    assert (values, after[1], counters["lost_offsets"]) == ([], 20, 15)


@pytest.mark.parametrize("txid", [1, 2])
def test_a_partition_without_a_position_has_joined_and_begins_with_its_first_message(broker, make_topic, txid):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 4))
    assert attempt(KafkaOpaqueSpout(KafkaTopic(broker.address, topic, start="latest")), None, txid=txid)[0] == numbers(
        0, 4
    )


def test_a_position_in_time_is_the_first_message_of_that_time_or_later(broker, make_topic):
    topic = make_topic()
    now_ms = 1000 * int(time.time())
    spout = KafkaOpaqueSpout(KafkaTopic(broker.address, topic))
    topic_id = attempt(spout, None)[1][0]
    for number in range(3):
        produce(broker.address, topic, [b"%d" % number], timestamp=now_ms + number)
    assert attempt(spout, [topic_id, {"since_ms": now_ms + 1}])[0] == [b"1", b"2"]
    assert attempt(spout, [topic_id, {"since_ms": now_ms + 9}])[0] == []
    assert spout.describe(0, [topic_id, {"since_ms": 1000}]) == ["nothing yet; it begins at 1,000 ms since the epoch"]


def test_a_position_of_another_topic_is_named(broker, make_topic):
    spout = KafkaOpaqueSpout(KafkaTopic(broker.address, make_topic()))
    with pytest.raises(SourceError, match="its id was another and is"):
        attempt(spout, ["another", 0], txid=2)
    with pytest.raises(SourceError, match="is not one in a Kafka topic"):
        attempt(spout, {"offset": 1}, txid=2)


def test_partitions_of_one_task_are_of_one_topic(broker, make_topic):
    spout = KafkaOpaqueSpout(KafkaTopic(broker.address, make_topic(2)))
    topic_id = attempt(spout, None)[1][0]
    emitter = spout.get_emitter({}, context())
    emitter.emit_partition_batch(TransactionAttempt(2, 1), Rows(), 0, ["another", 0])
    with pytest.raises(SourceError, match="its id was another and is"):
        emitter.emit_partition_batch(TransactionAttempt(2, 1), Rows(), 1, [topic_id, 0])


@pytest.mark.parametrize(
    ("offsets", "story"), [({5: 1}, "start names partition 5"), ({0: 99}, "start gives offset 99")]
)
def test_a_place_to_start_that_is_not_there_is_refused_before_the_first_transaction(broker, make_topic, offsets, story):
    with pytest.raises(SourceError, match=story):
        run_to_end(KafkaOpaqueSpout(KafkaTopic(broker.address, make_topic(), start=offsets)))
