"""Kafka topics as sources: transactional, opaque, and the spout of plain topologies in `plain`.

Which offsets belong to a transaction, and when one may be forgotten, is decided without a client: events in,
decisions out. Only `topic`, `partition_reader`, `worker_readers` and `group_mirror` speak to brokers, and nothing
outside this folder imports confluent_kafka.
"""
