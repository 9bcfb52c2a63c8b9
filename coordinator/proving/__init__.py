"""Proves users' topologies: plays them under faults, compares the states they leave, and names the mistake in the code.

Topologies are played on `coordinator/testing/`; of the other rooms, only the command imports this one.
"""
