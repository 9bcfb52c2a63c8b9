"""Drives a run of a transactional topology: start, waves, commits, and the summary of what was done.

`machine` decides, the coordinator has it carried out by one `*_side` module a party, and an engine does the work. No
Spark and no Redis here.
"""
