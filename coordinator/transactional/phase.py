"""The two phases of an attempt."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """A phase of an attempt."""

    PROCESSING = "processing"
    COMMIT = "commit"
