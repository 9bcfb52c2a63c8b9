"""Drives a run of a transactional topology: start, waves, commits, and the summary of what was done.

`machine` decides, the coordinator carries out, and an engine does the work. No Spark and no Redis here.
"""
