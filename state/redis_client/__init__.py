"""Communication with a server: its address, one connection, errors, replies, rights, and the function library.

Knows the library's name and format, but not what its functions do.
"""
