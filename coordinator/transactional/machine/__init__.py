"""The run of a transactional topology as one state machine: events in, decisions out.

Pure: no clock, no spout, no store, no engine. The coordinator carries out the decisions.
"""
