"""Which store a source's patterns are about: the local file system, or one that pyarrow opens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from coordinator.sources.files.stores.file_store import FileStore
from coordinator.sources.files.stores.local_store import LocalStore
from state.errors import TopologyError

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def choose_store(owner: str, patterns: Sequence[str], folder: str, filesystem: Any) -> FileStore:
    """The store of some patterns (driver).

    Args:
        owner: the source, for messages.
        patterns: paths or globs, or addresses such as ``s3://bucket/logs/*.json``.
        folder: what relative paths start from.
        filesystem: of pyarrow, in which the patterns are; None if they say so themselves.

    Raises:
        TopologyError: some patterns are addresses and some are not, or pyarrow is not installed.
    """
    addresses = [pattern for pattern in patterns if _ADDRESS.match(pattern)]
    if filesystem is None and not addresses:
        return LocalStore(folder)
    if len(addresses) not in (0, len(patterns)):
        raise TopologyError(
            f"pattern={list(patterns)!r} of {owner} mixes addresses with paths; give several sources, or only one kind"
        )
    if filesystem is not None and addresses:
        raise TopologyError(
            f"pattern {addresses[0]!r} of {owner} is an address, and filesystem is given too: take one of them, the "
            "pattern without its scheme or no filesystem"
        )
    from coordinator.sources.files.stores.arrow_store import ArrowStore  # pyarrow is an extra

    return ArrowStore(filesystem, patterns)
