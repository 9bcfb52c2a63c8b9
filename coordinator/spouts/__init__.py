"""Spouts, which bring transactions in, as users write them, spouts in memory, and how a run handles each kind."""
