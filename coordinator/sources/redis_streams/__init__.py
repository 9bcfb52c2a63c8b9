"""Redis Streams as a transactional source: ranges of ids, read on the executors.

The commands themselves are in `state/redis_topology/stream_reader`, as all that speaks to Redis.
"""
