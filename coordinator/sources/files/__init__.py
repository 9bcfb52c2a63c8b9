"""Files as sources: how they are cut into transactions on the driver and read back on executors.

`stores` finds files and opens their content; `follow` decides which files of a followed folder are complete. How bytes
become fields is decided in `records`.
"""
