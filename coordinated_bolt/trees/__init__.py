"""Runs the spouts, bolts and ackers of plain topologies, tuple by tuple, each in its ack tree.

No transactions here: processing is at least once.
"""
