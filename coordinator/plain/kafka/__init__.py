"""The Kafka spout of plain topologies: at least once, message by message, with acks, retries and stored offsets.

`partition_manager`, `retry_manager` and `offset_record` decide and know no client, no
clock and no server; `kafka_spout` carries out what they decide.
"""
