"""Takes a topology's state out of a server, as text, and puts it back.

State and position travel together: an import restores a topology as it was after one committed transaction. Nothing
here runs a topology; how a server reads and writes it is in
`state/redis_admin/exporting.py` and `state/redis_admin/importing.py`.
"""
