"""Spouts, which bring transactions in, as users write them, and spouts in memory.

The adapters that the framework puts around them are in `kinds`.
"""
