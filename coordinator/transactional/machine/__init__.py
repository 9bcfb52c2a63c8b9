"""The run of a transactional topology as one state machine: events in, decisions out.

Pure: no clock, no spout, no store, no engine. What a decision asks for is done by the coordinator.
"""
