"""Finds, starts, keeps alive and measures a server. Knows no topology."""
