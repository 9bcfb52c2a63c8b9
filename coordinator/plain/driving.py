"""What both drivers of plain topologies share: they raise failures, and ask spouts for tuples."""

from __future__ import annotations

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.plain.spout_task import SpoutTask


def end_on(failure: Failure | None) -> None:
    """Raises the failure that a task returned; does nothing if it returned none.

    Raises:
        UserCodeError, SourceError, StateRefusedError: see `Failure.to_error`.
    """
    if failure is not None:
        raise failure.to_error()


def emitted_now(spout: SpoutTask) -> int:
    """Asks a spout for a tuple, if it may emit; returns how many it emitted.

    Raises:
        UserCodeError: the spout raised.
    """
    if not spout.is_ready():
        return 0
    collector = spout.collector
    before = collector.emitted_count
    failure = spout.next_tuple()
    if failure is not None:
        end_on(failure)
    return collector.emitted_count - before
