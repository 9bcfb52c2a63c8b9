"""What one commit carries, as values: the changes of state, quarantined batches, dead letters. Pure.

What a server keeps afterwards is `records`; how it is asked is `redis_owner`.
"""
