"""The content of each page, made from a server's records: typed values in, values for templates out. Pure.

Text from outside becomes one line of bounded length here; templates escape it.
"""
