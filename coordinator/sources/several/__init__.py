"""Several sources of any kind as one spout."""
