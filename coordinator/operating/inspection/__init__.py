"""Examines a server, a machine and a stored topology without changing them, and reports faults with remedies.

Checks are pure functions of measured or stored values; modules that measure or read decide nothing. Nothing here
prints: the command line does.
"""
