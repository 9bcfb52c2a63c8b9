"""Who watches a task: observers, which are told by tasks and tell users' hooks, and the metrics they count.

Watching changes nothing: an observer never decides what a task does next.
"""
