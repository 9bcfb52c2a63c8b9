"""A topology over many slots: how its state is written, read, moved and put back; one slot needs none of this.

The protocol is in `sharded_store`; read that first.
"""
