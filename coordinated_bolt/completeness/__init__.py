"""Decides when a batch or a tree is complete: `tracking` counts, `acker` closes trees, `failure` has the reasons.

Rules only, called by `batches` and by the tasks of plain topologies. Nothing here runs user code, sends, or knows
frames and messages. `committers.group_commit` decides later whether committers have read everything that was sent.
"""
