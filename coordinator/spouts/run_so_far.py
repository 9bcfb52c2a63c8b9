"""How far a topology is, as told to the coordinators of all kinds of spouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """How far a topology is, over this run and earlier ones.

    A spout's txids number its own batches: replays of quarantined batches are left out.

    Attributes:
        last_txid: the highest txid that was cut, 0 if there is none; the next one is one higher.
        last: what was returned for it: the metadata of `initialize_transaction`, or the number of partitions; None if
            nothing is stored, as at the start of a run of an opaque spout.
        committed_txid: the last committed txid, 0 if there is none.
    """

    last_txid: int = 0
    last: Any = None
    committed_txid: int = 0

    @property
    def pending(self) -> int:
        """The number of transactions that were cut and are not committed."""
        return self.last_txid - self.committed_txid


class KnowsRunSoFar:
    """The base of the coordinators of all spouts.

    Attributes:
        run_so_far: how far the topology is; set by the run before it calls anything else, and again before each
            `is_ready` and `is_exhausted`.

    Differs from Storm: in Storm a coordinator must keep count itself, which it cannot do across restarts.
    """

    run_so_far: RunSoFar = RunSoFar()

    def inform(self, run_so_far: RunSoFar) -> None:
        """Sets `run_so_far`; called by the run (driver)."""
        self.run_so_far = run_so_far
