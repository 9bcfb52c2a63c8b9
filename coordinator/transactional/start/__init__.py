"""Starts a run: finds what earlier runs left, checks the spout and the input against it, and becomes the owner.

Every reason to refuse a start is here. Once the run has begun, `machine` decides.
"""
