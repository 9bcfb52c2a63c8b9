"""Reading exact ranges, with a scripted consumer: gaps, ends, errors and silence."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message

from coordinator.sources.kafka.broker_errors import ClientTrouble
from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.offset_ranges import OffsetRange
from coordinator.sources.kafka.partition_reader import OutOfRangeError, PartitionReader
from coordinator.sources.kafka.worker_readers import ReaderPool
from state import FailedException, SourceError

SETTINGS = ClientSettings("nowhere:9092", {})


def message(offset):
    return Message(topic="t", partition=0, offset=offset, value=b"%d" % offset)


def end(offset):
    return Message(topic="t", partition=0, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF))


def error(code):
    return Message(topic="t", partition=0, error=KafkaError(code))


class ScriptedConsumer:
    """Gives what the test says, in order; nothing once that is used up. Each empty wait takes a second."""

    def __init__(self, *given):
        self.given, self.assigned, self.now, self.is_closed = list(given), [], 0.0, False
        self.say_while_waiting = lambda: None

    def assign(self, partitions):
        self.assigned += [place.offset for place in partitions]

    def consume(self, num_messages=1, timeout=-1):
        taken, self.given = self.given[:num_messages], self.given[num_messages:]
        if not taken and timeout:
            self.now += 1.0
            self.say_while_waiting()
        return taken

    def close(self):
        self.is_closed = True


def reader_of(*given, trouble=None, says=None):
    consumer = ScriptedConsumer(*given)
    if says is not None:
        consumer.say_while_waiting = lambda: trouble(KafkaError(says))
    clock = lambda: consumer.now  # noqa: E731
    return PartitionReader(consumer, SETTINGS, "t", 0, trouble or ClientTrouble(), silence_s=5.0, clock=clock), consumer


def read(reader, first, after):
    return [each.offset() for portion in reader.read(OffsetRange(first, after)) for each in portion]


READS = {
    "a range ends with its last offset": ([*map(message, range(10))], [(0, 5, [0, 1, 2, 3, 4])]),
    "the next range is read from where the first ended": (
        [*map(message, range(10))],
        [(0, 5, [0, 1, 2, 3, 4]), (5, 10, [5, 6, 7, 8, 9])],
    ),
    "a message beyond a range ends it and belongs to the next": (
        [*map(message, (0, 1, 7, 8))],
        [(0, 5, [0, 1]), (5, 8, [7]), (8, 9, [8])],
    ),
    "the log's end cuts off no message that waits for the next range": (
        [*map(message, (0, 6, 7, 8)), end(9)],
        [(0, 4, [0]), (4, 7, [6]), (7, 9, [7, 8])],
    ),
    "the log's end ends a range whose last offsets have no message": ([message(0), end(5)], [(0, 5, [0])]),
    "an end before the end of the range is not believed": (
        [message(0), end(1), message(1), message(2)],
        [(0, 3, [0, 1, 2])],
    ),
    "a broker that comes back is waited for": (
        [message(0), error(KafkaError._TRANSPORT), message(1)],
        [(0, 2, [0, 1])],
    ),
}


@pytest.mark.parametrize(("given", "reads"), READS.values(), ids=READS)
def test_ranges_that_follow_on_one_another_are_read_whole_and_gone_to_once(given, reads):
    reader, consumer = reader_of(*given)
    for first, after, found in reads:
        assert read(reader, first, after) == found
    assert consumer.assigned == [0]


def test_an_empty_range_asks_nobody_and_a_replay_goes_back():
    reader, consumer = reader_of(message(0), message(1), message(0), message(1))
    assert read(reader, 5, 5) == []
    assert consumer.assigned == []
    assert read(reader, 0, 2) == read(reader, 0, 2) == [0, 1]
    assert consumer.assigned == [0, 0]


def test_a_range_that_is_gone_is_named():
    reader, _ = reader_of(message(0), error(KafkaError._AUTO_OFFSET_RESET))
    with pytest.raises(SourceError, match="offsets 0 to 4 of partition 0 of topic 't' are not in its log any more"):
        read(reader, 0, 5)
    with pytest.raises(OutOfRangeError):
        reader_of(error(KafkaError.OFFSET_OUT_OF_RANGE))[0].messages_from(3, 10, wait_s=9.0)


def test_silence_fails_the_attempt_and_the_next_goes_there_again():
    reader, consumer = reader_of(message(0))
    with pytest.raises(FailedException, match="brought nothing for 6 s"):
        read(reader, 0, 2)
    consumer.given = [message(0), message(1)]
    assert read(reader, 0, 2) == [0, 1]
    assert consumer.assigned == [0, 0]


def test_silence_is_explained_by_what_the_client_said_last():
    trouble = ClientTrouble()
    reader, _ = reader_of(trouble=trouble, says=KafkaError._ALL_BROKERS_DOWN)
    with pytest.raises(FailedException, match=r"at nowhere:9092 failed: .*_ALL_BROKERS_DOWN"):
        read(reader, 0, 2)


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION])
def test_what_may_not_be_read_ends_the_run_at_once(code):
    reader, consumer = reader_of(error(code))
    with pytest.raises(SourceError, match="check the user, its secret and its right"):
        read(reader, 0, 2)
    assert consumer.now == 0.0
    reader, consumer = reader_of(trouble=ClientTrouble(), says=code)
    with pytest.raises(SourceError, match="check the user"):
        read(reader, 0, 2)
    assert consumer.now <= 1.0


@pytest.mark.parametrize(
    "codes",
    [[KafkaError._AUTHENTICATION, KafkaError._TRANSPORT], [KafkaError._BAD_MSG], [KafkaError._TRANSPORT]],
    ids=["a wrong password", "a message larger than receive.message.max.bytes", "no connection"],
)
def test_what_was_said_first_is_the_reason_though_all_brokers_are_down_is_what_is_said_last(codes):
    trouble = ClientTrouble()
    for code in (*codes, KafkaError._ALL_BROKERS_DOWN):
        trouble(KafkaError(code))
    assert trouble.error is not None
    assert trouble.error.code() == codes[0]


def test_what_the_client_said_before_anybody_read_is_old():
    trouble = ClientTrouble()
    reader, _ = reader_of(message(0), error(KafkaError._TRANSPORT), message(1), trouble=trouble)
    trouble(KafkaError(KafkaError._AUTHENTICATION))
    assert read(reader, 0, 2) == [0, 1]


def test_messages_from_stops_at_the_end_and_knows_where_it_is():
    reader, _ = reader_of(message(3), end(6))
    assert [each.offset() for each in reader.messages_from(3, 10, wait_s=9.0)] == [3]
    assert reader.position() == 6
    assert reader.needs_no_wait(6)
    assert not reader.needs_no_wait(3)
    assert reader.messages_from(6, 10, wait_s=0.0) == []


def test_a_partition_that_was_waited_for_in_vain_holds_up_no_other_until_it_gives_something_again():
    reader, consumer = reader_of()
    for _ in range(3):
        assert not reader.needs_no_wait(3)
        assert reader.messages_from(3, 10, wait_s=2.0) == []
    assert reader.needs_no_wait(3)
    consumer.given = [message(3)]
    assert len(reader.messages_from(3, 10, wait_s=0.05)) == 1
    assert not reader.needs_no_wait(4)


def test_a_worker_keeps_its_readers_and_closes_the_least_used_ones():
    made = []

    def make(settings, topic, partition, *, reads_committed):
        reader, consumer = reader_of()
        made.append((partition, consumer))
        return reader

    pool = ReaderPool(make, limit=2)

    def ask(partition):
        return pool.reader(SETTINGS, "t", "id", partition, reads_committed=True)

    first = ask(0)
    ask(1)
    assert ask(0) is first
    ask(2)
    assert [(partition, consumer.is_closed) for partition, consumer in made] == [(0, False), (1, True), (2, False)]
    pool.close()
    assert all(consumer.is_closed for _, consumer in made)
    assert len(pool) == 0
