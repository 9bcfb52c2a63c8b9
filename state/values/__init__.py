"""Which values may travel and be stored, the kinds of state, and the form their values take in Redis. Pure.

Bytes are made in `state/codec.py`.
"""
