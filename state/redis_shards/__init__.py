"""How the owner writes a topology over many slots; one slot needs none of this.

The protocol is in `sharded_store`; read that first. `redis_admin` reads and moves it for others.
"""
