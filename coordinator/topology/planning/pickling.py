"""Pickles components for tasks in this process, without Spark."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle

from coordinator.topology.planning.task_wirings import spec_pickler


def dumps(spec: Any) -> bytes:
    """Pickles a component, by value if it cannot be imported (driver, once a component).

    Most components can be imported, and Python's own pickler is faster. A lambda, a class defined in a function, or a
    class that a notebook has redefined travels by value, as on Spark.

    Raises:
        Exception: the component does not pickle; the error of the pickler or of user code.
    """
    try:
        return pickle.dumps(spec, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - pickling runs user code, whose own error the second pickler raises again
        return dumps_by_value(spec)


def dumps_by_value(spec: Any) -> bytes:
    """Pickles a component together with all code that no other process could import."""
    packed: bytes = cloudpickle.dumps(spec)
    return packed


pickle_spec = spec_pickler(dumps)
