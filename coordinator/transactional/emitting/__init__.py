"""Begins a batch: runs a spout's emitter and what is chained to it, and reports to the acker what was emitted.

This runs on executors. What a spout's coordinator decides on the driver belongs to `transactional`.
"""
