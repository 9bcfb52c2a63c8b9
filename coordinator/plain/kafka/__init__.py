"""The Kafka spout of plain topologies: at least once, message by message, with acks, retries and stored offsets.

`partition_manager`, `retry_manager` and `offset_record` decide, without client, clock or server; `kafka_spout` carries
their decisions out.
"""
