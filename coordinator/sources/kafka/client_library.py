"""Says what is missing where the Kafka client is not installed; every module of the room imports this first."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("confluent_kafka") is None:
    raise ImportError(
        "Kafka sources need the library confluent-kafka, which is not installed in this Python; install "
        "txbatch[kafka] here, and on the executors"
    )
