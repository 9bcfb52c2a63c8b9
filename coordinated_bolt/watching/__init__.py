"""Watches tasks: observers, which tasks notify and which notify users' hooks, and the metrics they count.

Watching changes nothing: an observer never decides what a task does next.
"""
