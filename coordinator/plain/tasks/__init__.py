"""Runs the spouts, bolts and ackers of plain topologies, tuple by tuple, and batches inside them.

A topology with transactions uses nothing of this. Spouts and bolts grow trees of anchored tuples (`output_collector`,
`spout_collector`), an acker closes them (`acker_task`, on Spark `WaveTrees`), and a sub-topology counts
batches (`coordinated_task`). What they send are messages, in a wave packed into frames (`message_packer`).
"""
