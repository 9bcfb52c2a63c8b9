"""Watches tasks: metrics, hooks, and the observers that feed them.

Watching changes nothing: an observer never decides what a task does next.
"""
