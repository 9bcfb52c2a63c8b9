"""What differs between the versions of PySpark that txbatch runs on; no other module asks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from pyspark.util import _load_from_socket


def records_from(address: list[Any], serializer: Any) -> list[Any]:
    """Returns what a job has put where Java says (driver)."""
    loaded: Any = _load_from_socket(address, serializer)
    if isinstance(loaded, AbstractContextManager):  # from 4.2 on
        with loaded as records:
            return list(records)
    return list(loaded)
