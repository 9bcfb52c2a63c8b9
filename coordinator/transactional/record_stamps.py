"""Makes the record of a quarantined batch: what the machine knows of it, and what only the driver knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coordinator.transactional.machine.poison import Poison
from state.commits.commit import SetAside
from state.commits.quarantine import QuarantineRecord


@dataclass(frozen=True, slots=True)
class RecordStamps:
    """What the driver adds to a record.

    Attributes:
        wall_clock: seconds since the epoch.
        topology_fingerprint: digest of the topology's description.
        source_fingerprint: of the input.
        limit: most quarantined batches the topology may have.
    """

    wall_clock: Callable[[], float]
    topology_fingerprint: str
    source_fingerprint: str
    limit: int

    def set_aside(self, poison: Poison) -> SetAside:
        """Returns what the commit stores of a batch that is given up; called once per commit, which may be repeated."""
        record = QuarantineRecord(
            txid=poison.txid,
            batch=poison.batch,
            cause=poison.cause,
            set_aside_at_s=self.wall_clock(),
            topology_fingerprint=self.topology_fingerprint,
            source_fingerprint=self.source_fingerprint,
        )
        return SetAside(record, self.limit)
