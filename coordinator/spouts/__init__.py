"""Spouts, which bring transactions in: base classes for users, spouts in memory, and a run's handling of each kind."""
