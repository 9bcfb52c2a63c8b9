"""Commit groups: which attempts commit next, in which job, and what happens to them until the store has answered."""
