"""Judges what was measured. Pure: facts in, findings out, one finding a subject. Nothing in here measures."""
