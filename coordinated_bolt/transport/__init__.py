"""The transport between the tasks of batches: frames and blocks, their edges, and the outbox that sends them.

It knows only bytes, digests and task ids, not components, wirings or bolts. `completeness` decides whether everything
has arrived.
"""
