"""Tuples, the streams they belong to, and the groupings that choose their receivers.

`rows` checks and copies what is emitted, `routing` picks the receivers with a `groupings` chooser. Pure values and
choices: nothing here sends. `transport` carries tuples from task to task.
"""
