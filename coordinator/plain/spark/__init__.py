"""Waves of a plain topology as jobs of Spark."""
