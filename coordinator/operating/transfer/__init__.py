"""Exports a topology's state from a server, as text, and imports it.

State and position travel together: an import restores a topology as it was after one committed transaction. Nothing
here runs a topology; `state/redis_admin/exporting.py` and `state/redis_admin/importing.py` read and write the server.
"""
