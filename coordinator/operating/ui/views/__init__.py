"""What each page shows, made from a server's records: typed values in, values for templates out. Pure.

Text that is not ours becomes one line of bounded length here; templates escape it.
"""
