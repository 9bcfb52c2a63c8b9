"""A topology over many slots, as its owner writes it; one slot needs none of this.

The protocol is in `sharded_store`; read that first. How others read and move it is in `redis_admin`.
"""
