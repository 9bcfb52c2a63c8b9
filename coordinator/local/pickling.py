"""Pickles components for tasks in this process, without Spark where that is possible."""

from __future__ import annotations

import pickle
from typing import Any

from coordinator.planning.spec_pickling import spec_pickler


def dumps(spec: Any) -> bytes:
    """Pickles a component, by Spark's pickler where Python's own does not do (driver, once a component).

    Python's pickler takes whatever an import can find, and Spark need not be imported for that. A class made in a
    function, a lambda, or a class that a notebook has defined a second time travels by value as it does on Spark.

    Raises:
        Exception: the component does not pickle: whatever the pickler or user code raises.
    """
    try:
        return pickle.dumps(spec, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - pickling runs user code; what it raises may be raised again below
        try:
            from coordinator.spark.shipping import dumps as dumps_by_value
        except ImportError:  # pyspark is not installed
            raise error from None
        return dumps_by_value(spec)


pickle_spec = spec_pickler(dumps)
