"""Pickles components for tasks in this process, without Spark where that is possible."""

from __future__ import annotations

import pickle
from typing import Any

from coordinator.topology.planning.task_wirings import spec_pickler


def dumps(spec: Any) -> bytes:
    """Pickles a component, with Spark's pickler if Python's own fails (driver, once a component).

    Python's pickler handles whatever can be imported, without importing Spark. A lambda, a class defined in a function,
    or a class that a notebook has redefined is pickled by value, as on Spark.

    Raises:
        Exception: the component does not pickle: whatever the pickler or user code raises.
    """
    try:
        return pickle.dumps(spec, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - pickling runs user code; its error may be raised again below
        try:
            return dumps_by_value(spec)
        except ImportError:
            raise error from None


def dumps_by_value(spec: Any) -> bytes:
    """Pickles with Spark's pickler, which sends code that no other process could import.

    Raises:
        ImportError: pyspark is not installed.
    """
    from coordinator.engines.spark.shipping import dumps

    return dumps(spec)


pickle_spec = spec_pickler(dumps)
