"""Redis Streams as a transactional source: ranges of ids, read on the executors."""
