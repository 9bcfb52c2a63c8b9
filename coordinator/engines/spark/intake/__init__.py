"""Feeds stage 0 of a wave with the rows of a DataFrame; see `Intake` in `shuffled_stages`.

The specs that users write are in `coordinator/sources/`, which does not import this package.
"""
