"""What travels between tasks: frames of batches, messages of plain topologies, and the outboxes that fill them.

Bytes and their digests. `completeness` decides whether everything has arrived.
"""
