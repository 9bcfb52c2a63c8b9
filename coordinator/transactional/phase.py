"""The two phases of an attempt, by name."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """In which of its phases something happened to an attempt."""

    PROCESSING = "processing"
    COMMIT = "commit"
