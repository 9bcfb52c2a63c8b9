"""Drives a run of a transactional topology: start, waves, commits, and the final summary.

`machine` decides, the coordinator carries it out through one `*_side` module for each party, and an engine does the
work. Neither Spark nor Redis is imported here.
"""
