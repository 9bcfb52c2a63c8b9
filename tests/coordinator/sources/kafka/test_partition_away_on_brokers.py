"""Two real brokers, one of them killed: an opaque spout leaves out its partition, and reads it once it is back."""

from __future__ import annotations

import pytest

from coordinator import LocalCluster
from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaTopic
from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.topic import BrokerTopic
from coordinator.sources.kafka.worker_readers import worker_readers
from state import FailedException
from tests.support.kafka.messages import counted, numbers, produce, run_until, submit

pytestmark = [pytest.mark.nightly, pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture
def topic(own_broker, second_broker):
    yield own_broker.create_topic("spread", on=[1, 2])
    worker_readers().close()


def spout_of(brokers, topic, *, start="earliest", **options):
    servers = ",".join(each.address for each in brokers)
    return KafkaOpaqueSpout(KafkaTopic(servers, topic, TextLine("value"), start=start), **options)


def test_a_partition_whose_leader_is_killed_is_left_out_and_read_when_it_is_back(own_broker, second_broker, topic):
    both = own_broker, second_broker
    for partition in range(2):
        produce(own_broker.address, topic, numbers(10 * partition, 10 * partition + 5), partition)
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(both, topic, continuous=True))
        run_until(run, lambda: len(run.state("rows")) == 10)
        produce(own_broker.address, topic, [b"19"], 1)
        second_broker.kill()
        produce(own_broker.address, topic, numbers(20, 40), 0)  # within the session of the broker that is gone
        run_until(run, lambda: len(run.state("rows")) >= 30)
        own_broker.wait_for_leaders(topic, [1, -1])
        produce(own_broker.address, topic, numbers(40, 60), 0)
        run_until(run, lambda: len(run.state("rows")) >= 50)
        second_broker.start()
        run_until(run, lambda: len(run.state("rows")) == 51)
        assert counted(run) == [*range(5), *range(10, 15), 19, *range(20, 60)]


@pytest.mark.parametrize(("start", "missed"), [("earliest", 0), ("latest", 10)])
def test_a_partition_that_is_away_from_the_start_is_read_when_it_is_back(
    own_broker, second_broker, topic, start, missed
):
    both = own_broker, second_broker
    for partition in range(2):
        produce(own_broker.address, topic, numbers(10 * partition, 10 * partition + 5), partition)
    second_broker.kill()
    own_broker.wait_for_leaders(topic, [1, -1])
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(both, topic, start=start, continuous=True))
        run.run_until_idle()
        produce(own_broker.address, topic, numbers(20, 40), 0)
        run_until(run, lambda: len(run.state("rows")) == 25 - missed // 2)
        second_broker.start()
        own_broker.wait_for_leaders(topic, [1, 2])
        produce(own_broker.address, topic, numbers(40, 45), 1)
        run_until(run, lambda: len(run.state("rows")) == 35 - missed)
        assert counted(run)[-25:] == list(range(20, 45))


def test_a_finite_run_ends_once_the_partition_that_was_away_is_read(own_broker, second_broker, topic):
    both = own_broker, second_broker
    for partition in range(2):
        produce(own_broker.address, topic, numbers(10 * partition, 10 * partition + 5), partition)
    second_broker.kill()
    own_broker.wait_for_leaders(topic, [1, -1])
    with LocalCluster(seed=1) as cluster:
        run = submit(cluster, spout_of(both, topic))
        run_until(run, lambda: len(run.state("rows")) == 5)
        run.run_until_idle()
        assert not run.is_done
        second_broker.start()
        run_until(run, lambda: run.is_done)
        assert counted(run) == [*range(5), *range(10, 15)]


def test_a_look_says_which_partition_is_away_and_fails_if_none_is_there(own_broker, second_broker, topic):
    servers = ",".join(each.address for each in (own_broker, second_broker))
    alone = own_broker.create_topic("alone", on=[2])
    produce(own_broker.address, topic, numbers(0, 5), 0)
    second_broker.kill()
    own_broker.wait_for_leaders(topic, [1, -1])
    asked = BrokerTopic(ClientSettings(servers, {}), topic, reads_committed=True).look()
    assert (asked.bounds[0].high, asked.partition_count) == (5, 2)
    assert "partition 1 of topic 'spread' has no leader" in asked.away[1]
    with pytest.raises(FailedException, match="partition 1 of topic 'spread' has no leader"):
        asked.whole()
    with pytest.raises(FailedException, match="partition 0 of topic 'alone' has no leader"):
        BrokerTopic(ClientSettings(servers, {}), alone, reads_committed=True).look()
