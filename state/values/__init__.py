"""The values that may travel and be stored, the kinds of state, and the form of their values in Redis. Pure.

`state/codec.py` turns them into bytes.
"""
