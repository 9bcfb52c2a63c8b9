"""What a committer declares, by kind of state, each one Redis type.

`state_handle` has what all of them share, `declared_type` the checks of one type, `state_family` one key for each part.
Handles only collect changes: nothing here talks to a server. Pure.
"""
