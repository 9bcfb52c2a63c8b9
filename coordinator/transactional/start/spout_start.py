"""Calls the user's spout at the start of a run, before anything can be committed; errors name the method.

Nothing is in flight yet, so after a `FailedException` the call is repeated after a pause, and any other exception ends
the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinator.spouts.answers import expect_change, expect_fingerprint, expect_notes, expect_truth
from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import SpoutCoordinator
from coordinator.topology.building.topology import Component, Topology
from coordinator.transactional.guarded_spout import GuardedSpout
from state.codec import CodecError
from state.errors import FailedException, SourceError, TransactionError, UserCodeError
from state.values.own_copy import own_copy

_LOG = logging.getLogger("txbatch")
START_PAUSE_S = 0.5
Answer = TypeVar("Answer")


class SpoutStart:
    """Calls the methods of a topology's spout, and repeats calls that fail.

    Args:
        context: of the spout's first task.
        tries: most calls of a method that raises `FailedException`.
        pause: waits that many seconds between two calls.
    """

    def __init__(
        self, topology: Topology, context: TopologyContext, *, tries: int, pause: Callable[[float], None]
    ) -> None:
        self._component: Component = topology.spout
        self.kind = SpoutKind(topology.spout.spec)
        self._context = context
        self._tries = tries
        self._pause = pause

    def coordinator(self, resources: ExitStack) -> SpoutCoordinator:
        """Makes the spout's coordinator, whatever the kind of spout; it is closed with the resources."""
        context = self._context
        made = self._call("get_coordinator", lambda: self.kind.coordinator(context.conf, context))
        resources.callback(self._close, "coordinator", made.close)
        return made

    def committer(self, resources: ExitStack) -> SpoutCommitter | None:
        """Makes the spout's committer, None if it has none; it is closed with the resources."""
        if not self.kind.has_committer:
            return None
        context = self._context
        made = self._call("get_committer", lambda: self.kind.committer(context.conf, context))
        if made is not None:
            resources.callback(self._close, "committer", made.close)
        return made

    def fingerprint(self) -> str:
        return self._call("fingerprint", lambda: expect_fingerprint(self.kind.fingerprint()))

    def is_empty(self, spout: SpoutCoordinator) -> bool:
        return self._call("is_empty", lambda: expect_truth("is_empty", spout.is_empty()))

    def compare(self, spout: SpoutCoordinator, former: FormerInput) -> InputChange | None:
        own = replace(
            former,
            last=own_copy(former.last),
            pending=own_copy(former.pending),
            positions=own_copy(dict(former.positions)),
            notes=own_copy(dict(former.notes)),
        )
        return self._call("compare", lambda: expect_change(spout.compare(own)))

    def position(self, spout: SpoutCoordinator, metadata: Any) -> Any:
        """Asks the coordinator what of a transaction's metadata says what was read; for a refold."""
        return self._call("position", lambda: spout.position(own_copy(metadata)))

    def notes(self, spout: SpoutCoordinator, metadata: Any) -> Mapping[str, Any]:
        return self._call("notes", lambda: expect_notes(spout.notes(own_copy(metadata))))

    def resume(self, spout: GuardedSpout) -> None:
        self._call("resume", lambda: spout.informed().resume())

    def _call(self, method: str, ask: Callable[[], Answer]) -> Answer:
        component_id = self._component.component_id
        reason = ""
        for attempt in range(self._tries):
            if attempt:
                self._pause(START_PAUSE_S)
            try:
                return ask()
            except FailedException as error:
                reason = str(error)
                _LOG.info("%s of component %r failed, retrying: %s", method, component_id, error)
            except BaseException as error:
                if is_interruption(error):
                    raise
                if isinstance(error, TransactionError) and not isinstance(error, CodecError):
                    raise
                story = user_traceback(error)
                raise UserCodeError(component_id=component_id, traceback_text=story, method=method) from error
        raise SourceError(
            f"{method} of component {component_id!r} failed {self._tries} times, so nothing was started; last reason: "
            f"{reason}; fix that, then run again"
        )

    def _close(self, what: str, close: Callable[[], None]) -> None:
        try:
            close()
        except BaseException as error:  # everything is committed by now, so this must not fail the run
            if is_interruption(error):
                raise
            _LOG.exception("the %s of component %r could not be closed", what, self._component.component_id)
