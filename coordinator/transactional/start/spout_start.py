"""Calls the user's spout at the start of a run, before anything can be committed; errors name the method.

Nothing is in flight yet, so a call that raises `FailedException` is repeated after a pause; any other exception ends
the start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_change, expect_fingerprint, expect_truth
from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.topology.building.topology import Topology
from coordinator.transactional.spout_calls import SpoutCalls
from state.values.own_copy import own_copy


class SpoutStart:
    """Calls the methods of a topology's spout, and repeats calls that fail.

    Args:
        context: the context of the spout's first task.
        tries: most calls of a method that raises `FailedException`.
        pause: waits for the given number of seconds between two calls.

    Attributes:
        kind: the spout's kind.
        calls: calls the spout, here and during the run.
        spout: the spout's coordinator; set by `make`, before any call but `fingerprint`.
        committer: the spout's committer, None if it has none.
    """

    spout: SpoutCoordinator
    committer: SpoutCommitter | None = None

    def __init__(
        self, topology: Topology, context: TopologyContext, *, tries: int, pause: Callable[[float], None]
    ) -> None:
        self.kind = SpoutKind(topology.spout.spec)
        self.calls = SpoutCalls(topology.spout.component_id, tries=tries, pause=pause)
        self._context = context

    def make(self, resources: ExitStack, *, with_committer: bool = False) -> SpoutStart:
        """Makes the coordinator, and the committer if it is wanted; both are closed with the resources."""
        context = self._context
        self.spout = self.calls.call_until_answered(
            "get_coordinator", lambda: self.kind.coordinator(context.conf, context)
        )
        resources.callback(self.calls.close, "coordinator", self.spout.close)
        if with_committer and self.kind.has_committer:
            made = self.calls.call_until_answered("get_committer", lambda: self.kind.committer(context.conf, context))
            if made is not None:
                resources.callback(self.calls.close, "committer", made.close)
            self.committer = made
        return self

    def fingerprint(self) -> str:
        return self.calls.call_until_answered("fingerprint", lambda: expect_fingerprint(self.kind.fingerprint()))

    def is_empty(self) -> bool:
        return self.calls.call_until_answered("is_empty", lambda: expect_truth("is_empty", self.spout.is_empty()))

    def compare(self, former: FormerInput) -> InputChange | None:
        own = replace(
            former,
            last=own_copy(former.last),
            pending=own_copy(former.pending),
            positions=own_copy(dict(former.positions)),
            notes=own_copy(dict(former.notes)),
        )
        return self.calls.call_until_answered("compare", lambda: expect_change(self.spout.compare(own)))

    def position(self, metadata: Any) -> Any:
        """Asks the coordinator for the part of a transaction's metadata that describes the input read; for a refold."""
        return self.calls.call_until_answered("position", lambda: self.spout.position(own_copy(metadata)))
