"""Files as sources: how they are cut into transactions on the driver and read back on executors.

`stores` knows where files are and what is in them, `growing` which of a folder's files may be read by now. What a
record means is not decided here but in `records`.
"""
