"""When is a batch, or a tree of tuples, complete? Counting, the ack tree, and why an attempt failed.

The only room that compares what was expected with what arrived. No user code runs here.
"""
