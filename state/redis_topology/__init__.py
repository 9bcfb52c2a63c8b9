"""One topology on its server: owned and written, read at a txid, looked at, exported, restored, removed.

What is written and read are values of `commits`, `metadata` and `records`.
"""
