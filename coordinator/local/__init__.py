"""Topologies in one process, tuple by tuple, without Spark: for tests of users and of our own."""
