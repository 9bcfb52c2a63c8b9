"""Drives a run of a plain topology in waves: at least once, by acks and replays, without transactions."""
