"""Runs topologies in one process, tuple by tuple, without Spark: for users' tests and our own.

Nothing here is used on Spark. The engine that runs the stages of Spark in this process is in `coordinator/engines/waves/`.
"""
