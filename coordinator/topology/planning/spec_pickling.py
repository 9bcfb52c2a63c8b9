"""Pickles components so that they can be shipped; the engine chooses the pickler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.topology.planning.task_wirings import PickleSpec
from state.errors import TopologyError
from state.troubles import Trouble

SPEC_LIMIT_BYTES = 8 * 1024 * 1024
"""Largest pickled component; it is unpickled for every attempt."""


def spec_pickler(dumps: Callable[[Any], bytes]) -> PickleSpec:
    """Makes the function that pickles a topology's components (driver, once an engine).

    The function is called once for each component, task hook and custom grouping, before any txid is issued. It raises
    `TopologyError` for an object that does not pickle, or whose pickle is larger than `SPEC_LIMIT_BYTES`.

    Args:
        dumps: an object -> bytes that `pickle.loads` can read wherever tasks run.
    """

    def pickle_spec(component_id: str, spec: Any) -> bytes:
        try:
            packed = dumps(spec)
        except Exception as error:  # pickling runs user code
            raise TopologyError(
                f"component {component_id!r} cannot be shipped to executors: {type(error).__name__}: {error}; "
                "open sockets, files, locks and clients in prepare, not in __init__"
            ).about(Trouble.NOT_PICKLABLE) from error
        if len(packed) > SPEC_LIMIT_BYTES:
            raise TopologyError(
                f"component {component_id!r} pickles to {len(packed):,} bytes, more than {SPEC_LIMIT_BYTES:,}; "
                "load large data in prepare, or ship it as a file"
            ).about(Trouble.NOT_PICKLABLE)
        return packed

    return pickle_spec
