"""A quarantined batch that a run publishes as a new transaction, and the check that an attempt has read it. Pure."""

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
    """A quarantined batch, or dead letters, to publish as a new transaction.

    Attributes:
        txid: the txid under which the batch was set aside.
        batch: re-creates the batch.
        letters: the dead letters to publish, as they are stored; the batch's metadata is then what the spout's tasks
            emit. Empty for a quarantined batch.
    """

    txid: int
    batch: BatchInput
    letters: tuple[bytes, ...] = ()

    @property
    def batch_number(self) -> int:
        """The spout's number of the batch; 0 for dead letters, which the spout never cut."""
        return 0 if self.letters else self.batch.number

    def continues_from(self, txid: int, *, is_opaque: bool) -> Mapping[str, Mapping[int, Any]]:
        """Returns the positions given to the emitters of an attempt at `txid`, in place of the topology's.

        Emitters find the batch stored, as for any attempt after the first; those of an opaque spout find the positions
        below it.
        """
        if is_opaque:
            return {scope: {txid - 1: start} for scope, start in self.batch.starts.items()}
        return {scope: {txid: position} for scope, position in self.batch.positions.items()}

    def checked(self, outcome: AttemptResult, plan: RunPlan) -> AttemptResult:
        """Returns an attempt's outcome without positions, which are not the topology's; failed if other input was read.

        An opaque spout may cut another batch than before. Rows beyond the old batch were read by later transactions,
        and rows that the new one leaves out by none, so only exactly the old batch will do.
        """
        if outcome.failure is None:
            positions, found = self.batch.positions, outcome.metadata
            if plan.is_opaque:
                other = [scope for scope in {**positions, **found} if positions.get(scope) != found.get(scope)]
            else:  # everything was stored, so nothing had to be cut
                other = [scope for scope in found if outcome.began_from.get(scope) != UNCHAINED]
            if other:
                scope = min(other)
                text = f"{scope} ended at {found.get(scope)!r:.100} now, and at {positions.get(scope)!r:.100} before"
                outcome = replace(outcome, failure=Failure(FailureKind.SOURCE, plan.spout_id, 0, text))
        return replace(outcome, metadata={}, began_from={})
