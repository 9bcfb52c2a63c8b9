"""The content of one commit, as values: changes of state, quarantined batches, dead letters. Pure.

`records` has what a server keeps of it, `redis_owner` sends it.
"""
