"""Topologies as users build them: the builders, what they refuse, and the description that is remembered.

Checked values come out. Task numbers, stages and executors belong to `planning`.
"""
