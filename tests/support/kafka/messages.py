"""Messages for tests: written to a broker, plainly or in a transaction, and what an emitter makes of them."""

from __future__ import annotations

import time
from ast import literal_eval
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer, TopicPartition

from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.kafka.transactional_spout import KafkaTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState
from state.attempt import TransactionAttempt
from tests.support.runs.collecting import Collecting
from tests.support.sources.reading import standing

FLUSH_S = 30.0
PATIENCE_S = 60.0


def produce(address: str, topic: str, values: Sequence[bytes | None], partition: int = 0, **more: Any) -> None:
    """Writes messages to one partition, in order, and returns when the broker has them."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
        producer.poll(0)
    assert producer.flush(FLUSH_S) == 0


class KafkaTransaction:
    """A transaction of Kafka's own; ends as the test says."""

    def __init__(self, address: str, name: str) -> None:
        self._producer = Producer({"bootstrap.servers": address, "transactional.id": name, "log_level": 0})
        self._producer.init_transactions(FLUSH_S)

    def write(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(FLUSH_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(FLUSH_S)

    def abort(self) -> None:
        self._producer.abort_transaction(FLUSH_S)


class Rows:
    """Takes what an emitter emits."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.streams: dict[str, list[list[Any]]] = {}

    def emit_all(self, rows: Any, stream_id: str = "default") -> None:
        self.rows += [list(row) for row in rows]

    def emit_batch(self, batch: Any, stream_id: str = "default") -> None:
        self.emit_all(zip(*batch, strict=True), stream_id)

    def emit(self, values: Any, stream_id: str = "default") -> list[int]:
        self.streams.setdefault(stream_id, []).append(list(values))
        return []

    def dead_letter(self, tup: Any, reason: str) -> None:
        raise AssertionError("no message of these tests is bad")

    def emit_direct(self, task_id: int, values: Any, stream_id: str = "default") -> None:
        raise AssertionError("no source emits directly")


def context(task_index: int = 0, task_count: int = 1) -> TopologyContext:
    return TopologyContext("kafka_test", "source", task_index, task_count, task_index + 1, {"source": (1,)})


def emitted(spout: KafkaTransactionalSpout, metadata: Any, txid: int = 1, attempt_id: int = 1) -> list[Any]:
    """First values of what one task emits of a batch."""
    return [row[0] for row in emitted_rows(spout, metadata, txid, attempt_id)]


def emitted_rows(spout: KafkaTransactionalSpout, metadata: Any, txid: int = 1, attempt_id: int = 1) -> list[list[Any]]:
    """What one task emits of a batch."""
    rows = Rows()
    emitter = spout.get_emitter({}, context())
    emitter.emit_batch(TransactionAttempt(txid, attempt_id), metadata, rows)
    emitter.close()
    return rows.rows


def resumed_coordinator(spout: KafkaTransactionalSpout, last_txid: int = 0, last: Any = None) -> Any:
    """The coordinator of a run that continues after `last`."""
    made = spout.get_coordinator({}, context())
    standing(made, last_txid, last).resume()
    return made


def cut_all(spout: KafkaTransactionalSpout, last_txid: int = 0, last: Any = None) -> list[Any]:
    """The metadata of every transaction until nothing is left."""
    coordinator = resumed_coordinator(spout, last_txid, last)
    cuts = []
    while coordinator.is_ready():
        last = coordinator.initialize_transaction(last_txid + 1, last)
        last_txid += 1
        cuts.append(last)
    assert standing(coordinator, 1, last).is_exhausted()
    coordinator.close()
    return cuts


def numbers(first, after):
    return [b"%d" % number for number in range(first, after)]


class Keep(Collecting):
    rows = ListState("rows", value=str)
    count = HashState("count", value=int)

    def finish_batch(self):
        self.rows.extend(repr(list(tup)) for tup in self.tuples)
        self.count.increment("rows", len(self.tuples))


def submit(cluster, spout):
    builder = TransactionalTopologyBuilder("kafka_on_local", "messages", spout, parallelism=2)
    builder.set_committer_bolt("keep", Keep(), parallelism=1).global_grouping("messages")
    return cluster.submit(builder.build())


def run_to_end(spout):
    with LocalCluster(seed=7) as cluster:
        run = submit(cluster, spout)
        run.run_until_idle()
        return run.state("rows")


def run_until(run, is_so):
    """Turns until something is so: brokers are asked four times a second, so that takes many turns."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < deadline:
        run.run_until_idle()
    assert is_so(), run


def counted(run):
    """The numbers that are counted, if each message is one."""
    return sorted(int(literal_eval(row)[0]) for row in run.state("rows"))


def delete_before(broker, topic, offset):
    place = TopicPartition(topic, 0, offset)
    broker.admin_do(lambda admin: admin.delete_records([place])[place])
