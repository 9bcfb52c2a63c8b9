"""The server itself: found, started, kept alive, checked and measured. Knows no topology."""
