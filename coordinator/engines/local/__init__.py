"""Runs topologies in one process, tuple by tuple, without Spark: for users' tests and our own.

Nothing here is used on Spark. An in-process engine that runs the stages of Spark is in `tests/support/runs/`.
"""
