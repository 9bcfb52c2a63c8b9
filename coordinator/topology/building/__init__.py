"""Topologies as users build them: the builders, their checks, and the stored description.

A builder returns a checked value. Task numbers, stages and executors belong to `planning`.
"""
