"""Where runs begin, on a real broker: fixed once by the driver, whatever fails, joins or is started again."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from unittest import mock

import pytest
from confluent_kafka.admin import NewPartitions

from coordinator import LocalCluster
from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaTopic, KafkaTransactionalSpout, kafka_topic
from state import SourceError
from tests.support.kafka.messages import KafkaTransaction, counted, numbers, produce, run_until, submit

pytestmark = pytest.mark.kafka


def spout_of(kind, broker, topic):
    return kind(KafkaTopic(broker.address, topic, TextLine("value"), start="latest"), continuous=True)


@pytest.fixture(params=[KafkaOpaqueSpout, KafkaTransactionalSpout], ids=["opaque", "transactional"])
def kind(request):
    return request.param


@pytest.mark.often("transactional")
def test_what_arrives_after_a_latest_start_is_counted_though_it_triggers_the_first_transaction(
    broker, make_topic, kind
):
    topic = make_topic(2)
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(kind, broker, topic))
        run.run_until_idle()
        produce(broker.address, topic, numbers(0, 5))
        run_until(run, lambda: run.statistics.committed)
        assert counted(run) == [0, 1, 2, 3, 4]


def test_a_topic_that_does_not_exist_is_refused_by_name_or_waited_for(broker, topic_numbers, kind, caplog):
    name = f"missing.{next(topic_numbers)}"
    with LocalCluster(seed=1) as cluster:
        with pytest.raises(SourceError, match=rf"topic '{name}' .* check the topic's name and that it exists"):
            submit(cluster, kind(KafkaTopic(broker.address, name, TextLine("value"))))

        def made_after_a_look(seconds):
            broker.create_topic(name)
            produce(broker.address, name, numbers(0, 5))

        spout = kind(KafkaTopic(broker.address, name, TextLine("value"), missing="wait"))
        with (
            caplog.at_level(logging.WARNING),
            mock.patch.object(kafka_topic, "time", SimpleNamespace(sleep=made_after_a_look)),
        ):
            run = submit(cluster, spout)
        assert any(f"waiting until topic '{name}' exists" in text for text in caplog.messages)
        run.run_until_idle()
        assert counted(run) == [0, 1, 2, 3, 4]


def test_what_arrives_between_the_attempts_at_the_first_transaction_is_counted(broker, make_topic, kind):
    topic = make_topic()
    produce(broker.address, topic, [b"-1"])
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(kind, broker, topic))
        run.run_until_idle()
        run.hold("processing", 1)
        produce(broker.address, topic, numbers(0, 5))
        run_until(run, run.held)
        produce(broker.address, topic, numbers(5, 8))
        run.fail(1)
        run.release("processing")
        run_until(run, lambda: run.statistics.committed and len(run.state("rows")) == 8)
        assert counted(run) == list(range(8))


def test_a_run_that_dies_before_it_cuts_anything_leaves_where_it_began(broker, make_topic):
    topic, kind = make_topic(2), KafkaOpaqueSpout
    produce(broker.address, topic, [b"-1"])
    with LocalCluster(seed=1) as cluster:
        submit(cluster, spout_of(kind, broker, topic)).tick()
        produce(broker.address, topic, numbers(0, 5))
        produce(broker.address, topic, numbers(5, 8), partition=1)
        again = submit(cluster, spout_of(kind, broker, topic))
        run_until(again, lambda: len(again.state("rows")) == 8)
        assert counted(again) == list(range(8))


def test_a_run_killed_before_the_first_commit_leaves_where_it_began(broker, make_topic, kind):
    topic = make_topic(2)
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(kind, broker, topic))
        run.run_until_idle()
        run.hold("processing", 1)
        produce(broker.address, topic, numbers(0, 5))
        run_until(run, run.held)
        produce(broker.address, topic, numbers(5, 8), partition=1)
        again = submit(cluster, spout_of(kind, broker, topic))
        run_until(again, lambda: len(again.state("rows")) == 8)
        assert counted(again) == list(range(8))


def test_a_partition_without_a_message_keeps_where_it_began_and_one_that_joins_begins_with_its_first(
    broker, make_topic, kind
):
    topic = make_topic(2)
    produce(broker.address, topic, [b"-1"], partition=1)
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(kind, broker, topic))
        run.run_until_idle()
        broker.admin_do(lambda admin: admin.create_partitions([NewPartitions(topic, 3)])[topic])
        produce(broker.address, topic, numbers(0, 2), partition=2)
        run_until(run, lambda: len(run.state("rows")) == 2)
        produce(broker.address, topic, numbers(2, 4), partition=1)
        run_until(run, lambda: len(run.state("rows")) == 4)
        assert counted(run) == [0, 1, 2, 3]


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_what_was_read_uncommitted_of_an_open_transaction_is_not_lost_to_a_run_that_reads_committed(
    broker, make_topic, kind, ends
):
    topic = make_topic()
    transaction = KafkaTransaction(broker.address, topic)
    transaction.write(topic, numbers(0, 4))
    with LocalCluster(seed=1) as cluster:

        def read(isolation_level):
            run = submit(
                cluster, kind(KafkaTopic(broker.address, topic, TextLine("value"), isolation_level=isolation_level))
            )
            run.run_until_idle()
            assert run.is_done
            return counted(run)

        assert read("read_uncommitted") == [0, 1, 2, 3]
        assert read("read_committed") == [0, 1, 2, 3], "nothing is refused, and nothing is read twice"
        getattr(transaction, ends)()
        produce(broker.address, topic, numbers(4, 6))
        assert read("read_committed") == [0, 1, 2, 3, 4, 5]
