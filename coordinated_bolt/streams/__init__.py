"""Tuples, the streams they belong to, and the groupings that choose their receivers.

Pure values and choices. `transport` carries them from task to task.
"""
