"""A topology on its server as its owner has it: taken over, written in one fenced sequence, and read at a txid.

What is written and read are values of `commits`, `metadata` and `records`. What others do to it is in `redis_admin`.
"""
