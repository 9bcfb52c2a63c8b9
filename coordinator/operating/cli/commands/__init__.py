"""Commands of ``txbatch``: their options, and how their result is printed.

A module here defines the functions that `app` registers. What a command does belongs to another room.
"""
