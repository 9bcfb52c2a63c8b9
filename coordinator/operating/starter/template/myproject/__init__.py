"""Counts the visits of a web site, exactly once."""
