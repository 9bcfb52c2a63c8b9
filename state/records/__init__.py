"""What a server holds of a topology and tells of itself, as values. Pure: `redis_owner`, `redis_admin` store them."""
