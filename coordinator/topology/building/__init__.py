"""Topologies as users build them: the builders, the checks they make, and the description that is stored.

A builder returns a checked value. Task numbers, stages and executors belong to `planning`.
"""
