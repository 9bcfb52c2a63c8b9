"""Commands of ``txbatch``: their options, and how their result is printed.

A module here defines functions that `app` registers. The work of a command is done in other packages.
"""
