"""The states that a committer declares, by kind, one for each Redis type.

`state_handle` is their base and checks values of a declared type; `state_family` has one key for each part.
Handles only collect changes: nothing here talks to a server. Pure.
"""
