"""The states that a committer class declares, and how its instances get live ones.

A committer declares handles as class attributes. Those are descriptions, and using them raises; while
`finish_batch` runs, the instance has live copies from the executor. Handles only collect changes:
nothing is written until the group is published. The kinds of state are in the other modules here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from state.errors import TopologyError
from state.keys import Keys
from state.kinds.session import StateSession
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import StateHandle

DeclaredState = StateHandle | StateFamily[Any]

_declared: WeakKeyDictionary[type, Mapping[str, DeclaredState]] = WeakKeyDictionary()


def declared_states(committer_class: type) -> Mapping[str, DeclaredState]:
    """Returns attribute name -> handle for every state a committer class declares, bases included.

    Called for each committer in every attempt, so the answer is kept: a class declares its states when it is defined.
    """
    known = _declared.get(committer_class)
    if known is None:
        known = _declared[committer_class] = MappingProxyType(_found_states(committer_class))
    return known


def _found_states(committer_class: type) -> dict[str, DeclaredState]:
    found: dict[str, DeclaredState] = {}
    for base in reversed(committer_class.__mro__):
        for attribute, value in vars(base).items():
            found.pop(attribute, None)
            if isinstance(value, StateHandle | StateFamily):
                found[attribute] = value
    names: dict[str, str] = {}
    for attribute, handle in found.items():
        other = names.setdefault(handle.name, attribute)
        if other != attribute:
            raise TopologyError(
                f"state {handle.name!r} is declared twice in {committer_class.__name__}, "
                f"as {other!r} and {attribute!r}; keep one"
            )
    return found


def key_shown(declared: DeclaredState, keys: Keys) -> str:
    """Returns the Redis key of a declared state for readers, as in ``{topology_id}:views:<day>``."""
    key = keys.state(declared.name)
    return f"{key}:<{declared.part_name}>" if isinstance(declared, StateFamily) else key


def bind_states(committer: object, session: StateSession) -> None:
    """Puts a live handle for every declared state into a committer instance; the executor calls it once for each."""
    for attribute, handle in declared_states(type(committer)).items():
        if not hasattr(committer, "__dict__"):
            raise TopologyError(f"committer {type(committer).__name__} has __slots__; remove them to use state")
        committer.__dict__[attribute] = handle.bind(session)
