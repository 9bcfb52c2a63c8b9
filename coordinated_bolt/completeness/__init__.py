"""Decides when a batch or a tree is complete: `tracking` counts, `acker` closes trees, `failure` says why not.

Rules only, fed by `batches` and by the tasks of plain topologies. Nothing here runs user code, sends, or knows frames
and messages. Whether committers read what was sent is decided later, in `committers.group_commit`.
"""
