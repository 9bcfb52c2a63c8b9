"""What flows: tuples, the streams they belong to, and the groupings that choose their receivers.

Pure values and choices. What carries them from task to task is in `transport`.
"""
