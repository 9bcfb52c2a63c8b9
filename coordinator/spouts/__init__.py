"""Spouts: where transactions come from, as users write them.

What the framework wraps around them is in `kinds`.
"""
