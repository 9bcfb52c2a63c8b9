"""Coordinated batches inside a plain topology: a batch bolt's task fed by messages instead of frames.

The bridge between `batches` and `trees`; neither of them imports it.
"""
