"""Tuples, the streams they belong to, and the groupings that choose their receivers.

`rows` checks and copies emitted tuples, `routing` picks the receivers with the choosers of `groupings`. Pure values and
choices: nothing here sends. `transport` carries tuples from task to task.
"""
