"""Imports pyarrow, or explains that it is missing; unpacks zstd with it, which the standard library lacks."""

from __future__ import annotations

import importlib
from typing import Any

from state.errors import TopologyError


def require_arrow(what: str) -> Any:
    """Imports pyarrow (driver and executor).

    Raises:
        TopologyError: pyarrow is not installed here.
    """
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise TopologyError(
            f"{what} needs pyarrow, which is not installed in the Python that runs this: pip install 'txbatch[arrow]', "
            "on the driver and on every executor"
        ) from error


def unzstd(stream: Any, path: str) -> Any:
    """Returns a stream of the unpacked content of a zstd stream, which may have several frames.

    Raises:
        TopologyError: pyarrow is not installed here.
    """
    arrow = require_arrow(f"input file {path!r}, which is compressed with zstd,")
    return arrow.CompressedInputStream(arrow.PythonFile(stream, mode="r"), "zstd")
