"""What travels between the tasks of batches: frames and blocks, their edges, and the outbox that sends them.

Bytes and their digests, known by task ids only: nothing here knows components, wirings or bolts. `completeness` decides
whether everything has arrived.
"""
