"""A server's records and facts about itself, as values. Pure: `redis_owner` and `redis_admin` store them."""
