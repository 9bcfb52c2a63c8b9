"""Starts a run: finds the records of earlier runs, checks the spout and the input against them, and becomes the owner.

Every reason to refuse a start is here. Once the run has begun, `machine` decides.
"""
