"""Redis Streams as a transactional source: ranges of ids, read on the executors.

The commands themselves are in `coordinator/sources/redis_streams/stream_reader`, as all that speaks to Redis.
"""
