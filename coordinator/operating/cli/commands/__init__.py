"""Commands of ``txbatch``, one module each: their options, and how their result is printed.

A module here defines the function that `app` registers. What a command does belongs to another room.
"""
