"""Kafka topics as sources, transactional or opaque; also exports the plain spout, which is in `coordinator/plain/`.

`offset_ranges` decides without a client which offsets belong to a transaction: events in, decisions out. Only `topic`,
`partition_reader`, `broker_errors` and `GroupMirror` use a client, and nothing outside this folder imports
confluent_kafka.
"""

from typing import TYPE_CHECKING

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from coordinator.plain.kafka.kafka_spout import KafkaSpout
    from coordinator.plain.kafka.retry_manager import RetryRules
    from coordinator.sources.kafka.client_settings import FromEnvironment, FromFile
    from coordinator.sources.kafka.kafka_topic import KafkaTopic
    from coordinator.sources.kafka.opaque_spout import KafkaOpaqueSpout
    from coordinator.sources.kafka.transactional_spout import KafkaTransactionalSpout

__all__ = [
    "FromEnvironment",
    "FromFile",
    "KafkaOpaqueSpout",
    "KafkaSpout",
    "KafkaTopic",
    "KafkaTransactionalSpout",
    "RetryRules",
]
hand_on_lazily(__name__)
