"""Decides when a batch or a tree of tuples is complete: counting, the ack tree, and why an attempt failed.

Only this room compares what was expected with what arrived. No user code runs here.
"""
