"""The owner's access to a topology on its server: takeover, one fenced sequence of writes, and reads at a txid.

It writes and reads values of `commits`, `metadata` and `records`. `redis_admin` is for everyone else.
"""
