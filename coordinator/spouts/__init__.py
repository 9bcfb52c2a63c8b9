"""Spouts: where transactions come from."""
