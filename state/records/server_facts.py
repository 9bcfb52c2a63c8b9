"""What was measured on a server, as values: for `txbatch doctor`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class LibraryState(Enum):
    """Whether a server has the function library of this version of txbatch."""

    LOADED = "loaded"
    MISSING = "missing"
    OTHER_CODE = "other code"
    """A library of this name with other code, from another build of txbatch."""
    UNKNOWN = "unknown"
    """The user may not list functions."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server, measured.

    Attributes:
        server: how messages name it, without credentials.
        info: its INFO, as text.
        settings: its CONFIG, as far as the user may read it.
        library: whether it has the function library.
        may_load: whether the user may load it.
        lacking: commands that the user may not send, of those a driver sends directly.
        lacking_on_keys: commands that the user may not run on the topology's keys; None if it could not be asked.
        topology_id: the topology whose keys were asked about.
        round_trips_ms: how long single calls took, in milliseconds.
        clock_ahead_s: how far its clock is ahead of ours, in seconds; None if the user may not ask for the time.
    """

    server: str
    info: Mapping[str, str]
    settings: Mapping[str, str]
    library: LibraryState
    may_load: bool
    lacking: tuple[str, ...]
    lacking_on_keys: tuple[str, ...] | None
    topology_id: str
    round_trips_ms: tuple[float, ...]
    clock_ahead_s: float | None
