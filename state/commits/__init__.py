"""The content of one commit, as values: changes of state, quarantined batches, dead letters. Pure.

`records` has the records that a server keeps of it, and `redis_owner` sends it.
"""
