"""Which values may travel and be stored, of which kind a state is, and the form its values take in Redis. Pure.

Bytes are made in `state/codec.py`.
"""
