"""From a topology to its tasks: who runs where, in which stage, wired to which neighbours.

Pure functions of a topology and an engine's size. Nothing here runs a task.
"""
