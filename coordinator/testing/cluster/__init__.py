"""Runs topologies in one process, tuple by tuple, without Spark: for users' tests and our own.

Not used on Spark. The engine that runs the stages of Spark in one process is in `coordinator/engines/waves/`.
"""
