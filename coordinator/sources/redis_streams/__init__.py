"""Redis Streams as a transactional source: ranges of ids, read on the executors.

Only `coordinator/sources/redis_streams/stream_reader` sends commands to Redis.
"""
