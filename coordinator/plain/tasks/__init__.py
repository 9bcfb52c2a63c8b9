"""Runs the spouts, bolts and ackers of plain topologies, tuple by tuple, and batches inside them.

Transactional topologies do not use this package. Spouts and bolts grow trees of anchored tuples (`output_collector`,
`spout_collector`), an acker closes the trees (`acker_task`, on Spark `WaveTrees`), and a sub-topology counts batches
(`coordinated_task`). Tasks send messages, which a wave packs into frames (`message_packer`).
"""
