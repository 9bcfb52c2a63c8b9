"""Runs topologies in one process, tuple by tuple, without Spark: for users' tests and our own."""
