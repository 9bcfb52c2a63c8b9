"""Drives a run of a transactional topology: start, waves, commits, and the final summary.

`machine` decides, `coordinator` carries the decisions out, and an engine does the work. Neither Spark nor Redis is
imported here.
"""
