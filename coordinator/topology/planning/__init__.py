"""Plans a topology: its tasks, where and in which stage each runs, and to which neighbours it is wired.

Pure functions of a topology and an engine's size. Nothing here runs a task.
"""
