"""How far a topology is, as the coordinators of all kinds of spouts know it when they are asked for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """How far a topology is, by this run and earlier ones.

    Attributes:
        last_txid: the highest transaction that was cut, 0 if there is none; the next one has the number after it.
        last: what was returned for it: the metadata of `initialize_transaction`, or the number of partitions; None if
            nothing of it is stored, as at the start of a run of an opaque spout.
        committed_txid: the last transaction that was committed, 0 if there is none.
    """

    last_txid: int = 0
    last: Any = None
    committed_txid: int = 0

    @property
    def pending(self) -> int:
        """Transactions that were cut and are not committed."""
        return self.last_txid - self.committed_txid


class KnowsRunSoFar:
    """What the coordinators of all spouts have in common.

    Attributes:
        run_so_far: how far the topology is; set by the run before anything is asked, and again before each
            `is_ready` and `is_exhausted`.

    Differs from Storm: there a coordinator has to keep count itself, and after a restart it cannot.
    """

    run_so_far: RunSoFar = RunSoFar()

    def inform(self, run_so_far: RunSoFar) -> None:
        """Sets `run_so_far`; called by the run (driver)."""
        self.run_so_far = run_so_far
