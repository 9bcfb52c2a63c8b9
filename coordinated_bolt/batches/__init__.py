"""Runs the bolts of transactional topologies: one attempt of a batch on one task, from its frames to its report.

`coordinated_bolt` runs a bolt until its batch is complete; `batch_acker` gives the verdict on each attempt.
"""
