"""The short form: a stream and its steps, compiled to bolts, groupings and committers.

Users call the methods in `stream`; each call adds a node (`stream_nodes`), and `compilation` makes a topology of the
nodes. Its bolts are in `fused_bolt` (many steps in one bolt) and `keepers` (committers). Nothing here runs or plans a
topology, and no code outside needs to know that a topology was written in the short form.
"""
