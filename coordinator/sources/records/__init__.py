"""From a record's bytes to a tuple, whatever the source: formats, bad records, and where a record came from.

Sources know which bytes belong to a batch; formats know which tuples they make. Neither knows the other.
"""
