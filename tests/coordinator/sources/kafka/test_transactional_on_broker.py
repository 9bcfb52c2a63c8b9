"""`KafkaTransactionalSpout` on a real broker: exact ranges, exact replays, and what is gone is named."""

from __future__ import annotations

import datetime as dt
import time
from random import Random

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.offset_ranges import OffsetCut, OffsetRange
from state import SourceError
from tests.support.kafka.messages import (
    KafkaTransaction,
    cut_all,
    delete_before,
    emitted,
    emitted_rows,
    numbers,
    produce,
    resumed_coordinator,
    run_to_end,
)

pytestmark = pytest.mark.kafka
PATIENCE_S = 20.0


def only_range(metadata):
    (part,) = OffsetCut.from_plain(metadata).ranges.values()
    return part


@pytest.mark.nightly
def test_ranges_read_in_any_order_give_exactly_their_messages(broker, make_topic):
    topic, random = make_topic(), Random(7)
    transaction = KafkaTransaction(broker.address, topic)
    for number in range(40):
        transaction.write(topic, numbers(100 * number, 100 * number + 100))
        transaction.abort() if number % 5 == 4 else transaction.commit()
    spout = KafkaTransactionalSpout(
        KafkaTopic(broker.address, topic, origin_fields=["offset"]), messages_per_batch=10**6
    )
    (whole,) = cut_all(spout)
    by_offset = {offset: value for value, offset in emitted_rows(spout, whole)}
    assert sorted(map(int, by_offset.values())) == [n for n in range(4000) if n // 100 % 5 != 4]
    end = only_range(whole).next
    for _ in range(150):  # each one puts the reader elsewhere, while it reads ahead
        first = random.randrange(end)
        after = min(end, first + random.choice([1, 3, 100, 1500]))
        metadata = OffsetCut(whole["kafka_topic_id"], {0: OffsetRange(first, after)}).to_plain()
        expected = [value for offset, value in sorted(by_offset.items()) if first <= offset < after]
        assert [value for value, _ in emitted_rows(spout, metadata)] == expected


def test_aborted_messages_and_markers_are_in_no_batch_and_stop_none(broker, make_topic):
    topic = make_topic()
    transaction = KafkaTransaction(broker.address, topic)
    for first, end in ((0, transaction.commit), (3, transaction.abort), (6, transaction.commit)):
        transaction.write(topic, numbers(first, first + 3))
        end()
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic), messages_per_batch=5)
    cuts = cut_all(spout)
    assert [only_range(cut) for cut in cuts] == [OffsetRange(0, 5), OffsetRange(5, 10), OffsetRange(10, 12)]
    assert [emitted(spout, cut) for cut in cuts] == [numbers(0, 3), numbers(6, 8), numbers(8, 9)]


def test_a_range_of_nothing_but_aborted_messages_is_read_twice_to_its_end(broker, make_topic):
    topic = make_topic()
    transaction = KafkaTransaction(broker.address, topic)
    transaction.write(topic, numbers(0, 4))
    transaction.abort()
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic))
    (cut,) = cut_all(spout)
    assert only_range(cut) == OffsetRange(0, 5)
    started = time.monotonic()
    assert emitted(spout, cut) == emitted(spout, cut) == []
    assert time.monotonic() - started < PATIENCE_S


def test_an_open_transaction_is_cut_only_once_it_has_ended(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 2))
    transaction = KafkaTransaction(broker.address, topic)
    transaction.write(topic, numbers(2, 5))
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic))
    (cut,) = cut_all(spout)
    assert only_range(cut) == OffsetRange(0, 2)
    transaction.commit()
    (later,) = cut_all(spout, 1, cut)
    assert emitted(spout, later) == numbers(2, 5)


def test_a_range_without_messages_right_before_an_open_transaction_is_read_to_its_end(broker, make_topic):
    topic = make_topic()
    aborted, still_open = KafkaTransaction(broker.address, topic), KafkaTransaction(broker.address, f"{topic}.open")
    aborted.write(topic, numbers(0, 4))
    aborted.abort()
    still_open.write(topic, numbers(5, 7))
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic))
    (cut,) = cut_all(spout)
    assert only_range(cut) == OffsetRange(0, 5)
    started = time.monotonic()
    assert emitted(spout, cut) == []
    assert time.monotonic() - started < PATIENCE_S
    still_open.abort()


def test_read_uncommitted_takes_open_and_aborted_messages_too(broker, make_topic):
    topic = make_topic()
    transaction = KafkaTransaction(broker.address, topic)
    transaction.write(topic, numbers(0, 2))
    transaction.abort()
    transaction.write(topic, numbers(2, 4))
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic, isolation_level="read_uncommitted"))
    (cut,) = cut_all(spout)
    assert emitted(spout, cut) == numbers(0, 4)
    transaction.abort()


def test_a_compacted_range_is_read_to_its_end_whatever_is_left_of_it(broker, make_topic):
    topic = make_topic(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="100"
    )
    produce(broker.address, topic, numbers(0, 50), key=b"same")
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic, origin_fields=["offset"]), messages_per_batch=20)
    cuts = cut_all(spout)
    deadline = time.monotonic() + PATIENCE_S
    while len(emitted(spout, cuts[0])) == 20 and time.monotonic() < deadline:  # the cleaner works when it likes
        time.sleep(0.3)
        produce(broker.address, topic, [b"later"], key=b"same")  # rolls the segment
    found = [emitted(spout, cut) for cut in cuts]
    assert found[0] == []
    assert all(b"later" not in batch for batch in found)


def test_offsets_gone_before_they_were_cut_stop_the_run_or_are_counted_as_the_user_says(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 30))

    def spout(on_gone):
        return KafkaTransactionalSpout(KafkaTopic(broker.address, topic, on_gone=on_gone), messages_per_batch=10)

    first = cut_all(spout("fail"))[0]
    delete_before(broker, topic, 15)
    with pytest.raises(SourceError, match=r"offsets 10 to 14 of partition 0 .* set on_gone='earliest'"):
        cut_all(spout("fail"), 1, first)
    cut, *_ = cut_all(spout("earliest"), 1, first)
    assert (only_range(cut), cut["lost"]) == (OffsetRange(15, 25), 5)
    (cut,) = cut_all(spout("latest"), 1, first)
    assert (only_range(cut), cut["lost"]) == (OffsetRange(30, 30), 20)


def test_a_topic_deleted_and_made_again_is_named_by_driver_and_executor(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 3))
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic))
    (cut,) = cut_all(spout)
    admin = broker.admin()
    admin.delete_topics([topic])[topic].result(timeout=30)
    deadline = time.monotonic() + PATIENCE_S
    while topic in admin.list_topics(timeout=10).topics and time.monotonic() < deadline:
        time.sleep(0.1)
    broker.create_topic(topic)
    produce(broker.address, topic, numbers(7, 10))
    with pytest.raises(SourceError, match="was deleted and made again"):
        cut_all(spout, 1, cut)
    with pytest.raises(SourceError, match="was deleted and made again"):
        emitted(spout, cut)


def test_starts_at_the_latest_a_time_and_given_offsets(broker, make_topic):
    topic = make_topic(2)
    now_s = int(time.time())  # retention would delete what is much older
    produce(broker.address, topic, numbers(0, 3), timestamp=1000 * now_s - 20_000)
    produce(broker.address, topic, numbers(3, 6), timestamp=1000 * now_s - 10_000)

    def read(start):
        spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic, start=start))
        return [value for cut in cut_all(spout) for value in emitted(spout, cut)]

    assert read("earliest") == numbers(0, 6)
    assert read("latest") == []
    assert read(dt.datetime.fromtimestamp(now_s - 15, dt.UTC)) == numbers(3, 6)
    assert read(dt.datetime.fromtimestamp(now_s + 15, dt.UTC)) == []
    assert read({0: 4}) == numbers(4, 6)
    with pytest.raises(SourceError, match=r"start gives offset 99 of partition 0 of topic .*, but its log ends at 6"):
        read({0: 99})
    with pytest.raises(SourceError, match="start names partition 7"):
        read({7: 0})


def test_origin_fields_say_where_a_tuple_is_from(broker, make_topic):
    topic, sent_ms = make_topic(), 1000 * int(time.time()) + 7
    produce(broker.address, topic, [b"v"], key=b"k", headers=[("h", b"1"), ("none", None)], timestamp=sent_ms)
    fields = ["topic", "partition", "offset", "key", "headers", "timestamp"]
    seen = run_to_end(
        KafkaTransactionalSpout(KafkaTopic(broker.address, topic, TextLine("value"), origin_fields=fields))
    )
    assert seen == [repr(["v", topic, 0, 0, b"k", [("h", b"1"), ("none", None)], sent_ms])]


def test_tombstones_go_by_policy(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, [b"a", None, b"b"], key=b"k")

    def read(policy):
        spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic, on_tombstone=policy))
        (cut,) = cut_all(spout)
        return emitted(spout, cut)

    with pytest.raises(SourceError, match=r"at .*\[0\] at offset 1 has no value"):
        read("fail")
    assert read("skip") == [b"a", b"b"]
    assert read("empty") == [b"a", b"", b"b"]


def test_a_bad_record_is_named_with_its_offset(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, [b"good", b"\xff"])
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic, TextLine("value")))
    (cut,) = cut_all(spout)
    with pytest.raises(SourceError, match=r"\[0\] at offset 1 is bad: byte 0xff at position 0 is not valid UTF-8"):
        emitted(spout, cut)


def test_bytes_of_a_transaction_stay_near_their_bound(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, [b"x" * 1000] * 50)
    spout = KafkaTransactionalSpout(KafkaTopic(broker.address, topic), bytes_per_batch=10_000)
    cuts = cut_all(spout)
    assert [only_range(cut).count for cut in cuts] == [10] * 5
    assert resumed_coordinator(spout).estimated_bytes(cuts[0]) == 0  # nothing was sampled by that one


def test_a_consumer_group_is_told_what_is_durable(broker, make_topic):
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 30))
    run_to_end(
        KafkaTransactionalSpout(KafkaTopic(broker.address, topic), messages_per_batch=10, mirror_group="lag.tool")
    )
    asked = [ConsumerGroupTopicPartitions("lag.tool", [TopicPartition(topic, 0)])]
    found = broker.admin_do(lambda admin: admin.list_consumer_group_offsets(asked)["lag.tool"])
    assert [(each.partition, each.offset) for each in found.topic_partitions] == [(0, 30)]
