"""Plans a topology: its tasks, the place and stage where each runs, and its neighbours.

Pure functions of a topology and an engine's size. Nothing here runs a task.
"""
