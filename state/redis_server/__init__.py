"""The server itself: found, started and kept alive, its facts measured. Knows no topology."""
