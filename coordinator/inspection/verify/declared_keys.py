"""Tells which declared state a key holds: the state of that name, or one part of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.building.topology_description import DescribedState
from state.keys import Keys, split_member
from state.kinds.state_family import part_of_text


def state_of_key(keys: Keys, key: str, states: Mapping[str, DescribedState]) -> DescribedState | None:
    """Returns the state that a key holds or has a part of; None if no declared state has such a key."""
    name, part = split_member(keys.state_name(key))
    state = states.get(name)
    if state is None or (part is None) != (state.part_type is None):
        return None
    if part is not None and state.part_type is not None:
        try:
            part_of_text(part, state.part_type)
        except ValueError:
            return None
    return state
