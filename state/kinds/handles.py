"""The states that a committer class declares, as class attributes.

Class attributes are only declarations, and using them raises; while `finish_batch` runs, the instance has live copies,
bound by its session. Handles only collect changes: nothing is written until the group is published. The other modules
here have the kinds of state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state.errors import TopologyError
from state.keys import Keys
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import StateHandle

DeclaredState = StateHandle[Any] | StateFamily[Any]


class GivenStates:
    """Marks a committer whose states are chosen for each instance, not by its class.

    Attributes:
        given_states: attribute name -> a state that the committer owns.
        read_states: attribute name -> a state that another component of the topology declares; the committer reads it
            as the previous transactions left it.
    """

    given_states: Mapping[str, DeclaredState] = {}
    read_states: Mapping[str, DeclaredState] = {}


def declared_states(committer: object) -> dict[str, DeclaredState]:
    """Returns attribute name -> handle for every state that a committer's class, or a base, declares.

    States given by `GivenStates` are included.
    """
    committer_class = committer if isinstance(committer, type) else type(committer)
    found: dict[str, DeclaredState] = {}
    for base in reversed(committer_class.__mro__):
        for attribute, value in vars(base).items():
            found.pop(attribute, None)
            if isinstance(value, StateHandle | StateFamily):
                found[attribute] = value
    if isinstance(committer, GivenStates):
        found.update(committer.given_states)
    names: dict[str, str] = {}
    for attribute, handle in found.items():
        other = names.setdefault(handle.name, attribute)
        if other != attribute:
            raise TopologyError(
                f"state {handle.name!r} is declared twice in {committer_class.__name__}, "
                f"as {other!r} and {attribute!r}; keep one"
            )
    return found


def bound_states(committer: object) -> dict[str, DeclaredState]:
    """Returns the states bound while `finish_batch` runs: the committer's own, and others' states that it reads."""
    return {**declared_states(committer), **(committer.read_states if isinstance(committer, GivenStates) else {})}


def key_shown(declared: DeclaredState, keys: Keys, shard_count: int) -> str:
    """Returns the Redis key of a declared state for display, such as ``{topology_id}:views:<day>``."""
    key = keys.shown(declared.name, shard_count)
    return f"{key}:<{declared.part_name}>" if isinstance(declared, StateFamily) else key
