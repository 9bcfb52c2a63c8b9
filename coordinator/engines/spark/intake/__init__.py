"""What feeds stage 0 of a wave: the spout's own emitters, or the rows of a DataFrame.

Specs that users write live in `coordinator/sources/`, which knows nothing of this room.
"""
