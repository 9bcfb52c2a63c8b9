"""What travels between tasks: frames of batches, messages of plain topologies, and the outboxes that fill them.

Bytes and their digests. Whether everything arrived is decided in `completeness`.
"""
