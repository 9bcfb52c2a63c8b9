"""Feeds stage 0 of a wave with the rows of a DataFrame; see `Intake` in `wave`.

Specs that users write live in `coordinator/sources/`, which knows nothing of this room.
"""
