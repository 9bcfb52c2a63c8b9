"""Pickles components for executors: what they cannot import travels by value."""

from __future__ import annotations

from typing import Any

from pyspark import cloudpickle

from coordinator.planning.spec_pickling import spec_pickler


def dumps(spec: Any) -> bytes:
    """Pickles by value whatever is not in an importable module (driver, once a component)."""
    packed: bytes = cloudpickle.dumps(spec)  # type: ignore[no-untyped-call] # pyspark ships it untyped
    return packed


pickle_spec = spec_pickler(dumps)
