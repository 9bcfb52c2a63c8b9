"""Runs the bolts of transactional topologies: one attempt of a batch on one task, from its frames to its report.

`batch_task` unpacks frames and computes edges, `coordinated_bolt` runs a bolt until its batch is complete on the task,
`batch_acker` decides whether the attempt is complete on all tasks. The rules are in `completeness`, the frames in
`transport`; `committers` changes stored state.
"""
