"""What a server holds and says about itself, as values. Pure: `redis_owner`, `redis_admin` store them."""
