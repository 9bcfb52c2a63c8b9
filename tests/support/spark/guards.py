"""Takes guards out of the process it is called in, to see what they are good for."""

from __future__ import annotations

from collections.abc import Iterable

from coordinated_bolt.completeness.tracking import Tracking
from coordinated_bolt.transport.edges import EdgeDigest

GUARDS = ("counting", "digest")


def disable(guards: Iterable[str]) -> None:
    """Takes out guards for as long as this process lives.

    ``counting``: reports are awaited, but what they say is believed to be what came.
    ``digest``: edges of bytes say nothing.
    """
    for guard in guards:
        if guard == "counting":
            setattr(Tracking, "_is_matched", lambda self, entry: True)  # noqa: B010 - mypy refuses the assignment
        elif guard == "digest":
            setattr(EdgeDigest, "edge_id", lambda self: 0)  # noqa: B010
        else:
            raise ValueError(guard)
