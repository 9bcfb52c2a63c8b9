"""Makes tuples from the bytes of records, for every source: formats, bad records, and the origin of records.

Sources decide which bytes belong to a batch, formats which tuples the bytes make. Neither knows the other.
"""
