"""Watches tasks: observers, which tasks notify and which notify users' hooks, and metrics.

Watching changes nothing: an observer never decides what a task does next.
"""
