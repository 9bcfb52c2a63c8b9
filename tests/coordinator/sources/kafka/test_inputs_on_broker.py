"""Topics among several inputs: what they hold is counted once, whatever is stopped and started again."""

from __future__ import annotations

import pytest

from coordinator import LocalCluster, RunOptions
from coordinator.sources import Inputs, TextFiles, TextLine
from coordinator.sources.kafka import KafkaTopic, KafkaTransactionalSpout
from state import HashState
from tests.support.kafka.messages import numbers, produce, run_until
from tests.support.runs.collecting import Collecting
from tests.support.topologies.components import collecting

pytestmark = pytest.mark.kafka


class Count(Collecting):
    """Counts what arrives by its stream and its first value."""

    counts = HashState("counts")

    def finish_batch(self):
        for tup in self.tuples:
            self.counts.increment(f"{tup.stream_id} {tup[0]}")


def counting(inputs):
    return collecting("inputs", inputs, Count(), *inputs.sources, source="inputs", tasks=2)


def spout_of(broker, topic, **more):
    return KafkaTransactionalSpout(KafkaTopic(broker.address, topic, TextLine("value")), messages_per_batch=4, **more)


def once(**ranges):
    return {f"{name} {number}": 1 for name, numbers_ in ranges.items() for number in numbers_}


def test_two_topics_and_a_file_are_counted_once_over_several_runs(broker, make_topic, tmp_path):
    first, second = make_topic(2), make_topic()
    (tmp_path / "lines.txt").write_text("".join(f"{number}\n" for number in range(9)))

    def inputs():
        files = TextFiles(str(tmp_path / "*.txt"), lines_per_batch=2)
        return Inputs(first=spout_of(broker, first), second=spout_of(broker, second), lines=files)

    produce(broker.address, first, numbers(0, 7))
    produce(broker.address, second, numbers(0, 13))
    with LocalCluster(seed=1) as cluster:
        cluster.submit(counting(inputs()), options=RunOptions(last_txid=2)).run_until_idle()
        produce(broker.address, first, numbers(7, 11))
        run = cluster.submit(counting(inputs()))
        run.hold("commit", 3)
        run.run_until_idle()
        run.fail(3)
        run.release("commit", 3)
        run.run_until_idle()
        assert run.is_done
        assert run.state("counts") == once(first=range(11), second=range(13), lines=range(9))
        again = cluster.submit(counting(inputs()))
        again.run_until_idle()
        assert again.statistics.committed == 0


def test_topics_that_are_followed_go_on_one_by_one(broker, make_topic):
    first, second = make_topic(), make_topic()
    with LocalCluster(seed=2) as cluster:
        inputs = Inputs(
            first=spout_of(broker, first, continuous=True, linger_ms=0),
            second=spout_of(broker, second, continuous=True, linger_ms=0),
        )
        run = cluster.submit(counting(inputs))
        run.run_until_idle()
        produce(broker.address, second, numbers(0, 5))
        run_until(run, lambda: len(run.state("counts")) == 5)
        produce(broker.address, first, numbers(0, 3))
        run_until(run, lambda: len(run.state("counts")) == 8)
        assert run.state("counts") == once(first=range(3), second=range(5))
