"""Tries users' code without committing anything: one bolt on some tuples, a dry run of batches, one batch again."""
