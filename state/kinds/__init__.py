"""What a committer declares, by kind of state, each one Redis type.

`state_handle` has what all of them share, `state_family` one key for each part, `value_form` the values that Redis
keeps in another form. Handles only collect changes: nothing here talks to a server. Pure.
"""
