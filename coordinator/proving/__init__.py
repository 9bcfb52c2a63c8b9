"""Proves users' topologies: plays them under faults, compares what is left, and says which mistake explains it.

What is played is in `coordinator/engines/`; nothing in the other rooms but the command imports this one.
"""
