"""Spark's Java process: how it is started and reached, what it prints, whether it lives, and its archive of classes."""
