"""What differs between the versions of Spark: which ones run txbatch, and names that not all of them have.

Nothing else here imports a private name that has moved, so that a version that cannot be used is refused in a sentence
and never by an `ImportError`. PySpark itself is imported only where it is asked for.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

from state.errors import EngineError

if TYPE_CHECKING:
    from pyspark import SparkContext

OLDEST_SPARK, NEXT_SPARK = (3, 5), (5,)
SUPPORTED = "3.5 to 4.3"
"""The versions that are tried; newer ones before `NEXT_SPARK` are allowed."""


def numbers_of(version: str) -> tuple[int, ...]:
    """Returns the first two numbers of a version; fewer if it does not begin with two."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())


def load_records(answer: Any, serializer: Any) -> list[Any]:
    """Returns the records of a job's partitions.

    Args:
        answer: port and secret, or path, from which Java sends them.
        serializer: pyspark's, which reads them.
    """
    try:
        from pyspark.util import _load_from_socket as load
    except ImportError:  # PySpark 3.5
        from pyspark.rdd import _load_from_socket as load  # type: ignore[attr-defined,no-redef]
    loaded: Any = load(answer, serializer)
    if isinstance(loaded, AbstractContextManager):  # from PySpark 4.2 on
        with loaded as records:
            return list(records)
    return list(loaded)


def keep_archives_listed() -> None:
    """Has imports of this process list no archive twice (executor, at the beginning of a task).

    Up to PySpark 4.1 a worker forgets before each task what the folders and archives of its path contain, and reads the
    list of every archive again for every package in it: most of a worker's time. Ours is named by its content, and
    from 4.2 on no archive is listed again, unless a new one has come.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter):
            vars(finder)["invalidate_caches"] = _keep


def _keep() -> None:
    """In place of `zipimporter.invalidate_caches`."""
