"""What a committer class writes in one transaction, without a topology around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.commits.packed_writes import unpacked
from state.commits.state_writes import StateWrites
from state.kinds.handles import declared_states
from state.kinds.session import StateSession


def written(committer: Any, change: Callable[[Any], None], reader: Any = None) -> dict[str, StateWrites]:
    """Returns what `change` writes to each of an instance's declared states, as it is while `finish_batch` runs.

    Args:
        committer: an instance whose class declares states.
        change: writes to them.
        reader: reads committed state; None where nothing is read.
    """
    session = StateSession(reader)
    session.bind(committer, declared_states(type(committer)))
    session.open()
    change(committer)
    return {name: unpacked(writes).settled() for name, writes in session.close().states.items()}
