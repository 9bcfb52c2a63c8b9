"""Looks at a server, a machine and a stored topology without changing them, and says what is wrong and what to do.

Checks are pure functions of what was measured or read; modules that measure or read decide nothing.
Nothing in here prints: the command line does.
"""
