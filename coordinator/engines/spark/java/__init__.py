"""Spark's Java process: how it is started and reached, what it prints, and whether it lives."""
