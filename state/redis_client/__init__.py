"""How a server is talked to: its address, one connection, errors, replies, rights, and the function library.

Knows the library's name and format, and nothing of what its functions do.
"""
