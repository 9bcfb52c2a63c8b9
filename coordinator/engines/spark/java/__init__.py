"""Spark's Java process from outside: whether it lives, how it ended, what it prints; no job is made here."""
