"""Where a batch begins: runs a spout's emitter on its task, and reports what was emitted to the acker.

Runs on executors. What the coordinator of a spout decides on the driver belongs to `transactional`.
"""
