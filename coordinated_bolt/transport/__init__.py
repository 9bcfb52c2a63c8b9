"""What travels between tasks: frames and blocks of batches, messages of plain topologies, and their outboxes.

Bytes and their digests, known by task ids only: nothing here knows components, wirings or bolts. `completeness` decides
whether everything has arrived.
"""
