"""Tries a user's code and commits nothing: one bolt on some tuples, a dry run of some batches, one batch again."""
