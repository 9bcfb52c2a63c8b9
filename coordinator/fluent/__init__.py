"""The short form: a stream and what is done with it, compiled to bolts, groupings and committers.

`stream` is what users call; each call adds to the `stream_nodes`, and `compilation` makes a topology of these. What
runs is `fused_bolt` (many steps in one bolt) and `keepers` (committers). Nothing here runs or plans a topology, and
nothing outside needs to know that one was written in the short form.
"""
