"""Counts visits, and the seconds they took, by page, and refuses those that cannot be true.

Run it::

    txbatch run myproject.topology:topology
"""

from coordinator import FixedBatchesSpout, HashState, KafkaTopic, KafkaTransactionalSpout, Topology, stream
from coordinator.sources import JsonFields

VISIT = {"page": str, "seconds": int}


def topology(
    servers: str = "localhost:9092", topic: str = "visits", visits_per_batch: int = 25, follow: bool = False
) -> Topology:
    """Returns the topology; ``txbatch run -p NAME=VALUE`` sets its parameters.

    Args:
        servers: the brokers.
        topic: its messages are JSON objects.
        visits_per_batch: most visits in one transaction.
        follow: whether to wait for more messages, or to end with those that are there.
    """
    messages = KafkaTopic(servers, topic, JsonFields(VISIT))
    return counted(KafkaTransactionalSpout(messages, messages_per_batch=visits_per_batch, continuous=follow))


def counted(visits: KafkaTransactionalSpout | FixedBatchesSpout) -> Topology:
    """Returns the topology over any source of visits; the tests give it some of their own."""
    true = stream(visits).dead_letter_if(
        lambda seconds: seconds < 0, lambda seconds: f"a visit cannot take {seconds} seconds", of="seconds"
    )
    true.count_by("page", into=HashState("visits")).sum_by("page", "seconds", into=HashState("seconds"))
    return true.topology("myproject")
