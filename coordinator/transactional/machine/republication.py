"""A quarantined batch that a run publishes as a new transaction, and whether an attempt has read the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.partition_cut import UNCHAINED
from coordinator.transactional.machine.run_plan import RunPlan
from state.commits.quarantine import BatchInput


@dataclass(frozen=True, slots=True)
class Republication:
    """A quarantined batch to be read again.

    Attributes:
        txid: under which it was set aside.
        batch: what re-creates it.
        letters: the dead letters, as they are stored, that this publishes in place of a batch; the batch's metadata is
            then what the spout's tasks emit. Empty for a quarantined batch.
    """

    txid: int
    batch: BatchInput
    letters: tuple[bytes, ...] = ()

    @property
    def batch_number(self) -> int:
        """The spout's number of the batch; 0 for dead letters, which are not one of its batches."""
        return 0 if self.letters else self.batch.number

    def continues_from(self, txid: int, *, is_opaque: bool) -> Mapping[str, Mapping[int, Any]]:
        """Returns what its emitters are given in place of the topology's positions, for an attempt at `txid`.

        They find the batch stored, as for any attempt after the first; an opaque spout, which never does, finds what
        lay below it.
        """
        if is_opaque:
            return {scope: {txid - 1: start} for scope, start in self.batch.starts.items()}
        return {scope: {txid: position} for scope, position in self.batch.positions.items()}

    def checked(self, outcome: AttemptResult, plan: RunPlan) -> AttemptResult:
        """Returns the outcome of an attempt without positions, which are not the topology's; failed if it read others.

        An opaque spout may cut another batch than before. The rows beyond the old one were read by later transactions,
        and those it leaves out by none, so only exactly the old batch will do.
        """
        if outcome.failure is None:
            positions, found = self.batch.positions, outcome.metadata
            if plan.is_opaque:
                other = [scope for scope in {**positions, **found} if positions.get(scope) != found.get(scope)]
            else:  # everything was stored, so there was nothing to cut
                other = [scope for scope in found if outcome.began_from.get(scope) != UNCHAINED]
            if other:
                scope = min(other)
                text = f"{scope} ended at {found.get(scope)!r:.100} now, and at {positions.get(scope)!r:.100} before"
                outcome = replace(outcome, failure=Failure(FailureKind.SOURCE, plan.spout_id, 0, text))
        return replace(outcome, metadata={}, began_from={})
