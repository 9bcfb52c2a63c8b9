"""Chooses which quarantined batches a run replays, and refuses those that the spout given now would not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.options import adopted_words
from state.commits.quarantine import QuarantineRecord
from state.errors import StateRefusedError, TopologyError
from state.troubles import Trouble


@dataclass(frozen=True, slots=True)
class RepublishChoice:
    """The quarantined batches to replay.

    Attributes:
        txids: under which they were set aside; None replays all.
    """

    txids: tuple[int, ...] | None = None

    @classmethod
    def of(cls, given: Sequence[int] | str | None) -> RepublishChoice | None:
        """Returns the choice that an argument `replay` of `run` makes, None if there is none.

        Raises:
            TopologyError: it is neither "all" nor a list of txids.
        """
        if given is None:
            return None
        if given == "all":
            return cls()
        if isinstance(given, str) or not given or not all(type(txid) is int and txid > 0 for txid in given):
            raise TopologyError(f"argument replay is {given!r}; give 'all', or a list of quarantined txids")
        return cls(tuple(given))

    def chosen(
        self, topology_id: str, records: Sequence[QuarantineRecord], *, source_fingerprint: str, adopt: bool | str
    ) -> tuple[Republication, ...]:
        """Returns the batches in the order of their txids; called once at start, before the takeover (driver).

        Args:
            topology_id: for messages.
            records: of all quarantined batches.
            source_fingerprint: of the input that is given now.
            adopt: see `RunOptions.adopt`.

        Raises:
            TopologyError: there is none, or not all of those that were asked for.
            StateRefusedError: one was read from another input, and the user has not accepted that.
        """
        known = {record.txid: record for record in records}
        missing = sorted(set(self.txids or ()) - known.keys())
        if missing or not known:
            asked = f"quarantined txid {', '.join(map(str, missing))}" if missing else "quarantined batch"
            raise TopologyError(
                f"topology {topology_id!r} has no {asked}; `txbatch quarantine list {topology_id}` shows what there is"
            )
        wanted = sorted(known) if self.txids is None else sorted(set(self.txids))
        for txid in wanted:
            stored = known[txid].source_fingerprint
            if stored != source_fingerprint and adopted_words(adopt) is None:
                raise StateRefusedError(
                    f"quarantined txid {txid} of topology {topology_id!r} was read from another input: stored "
                    f"fingerprint {stored!r}, given {source_fingerprint!r}; give that input, or replay from this one "
                    "with --adopt (in Python RunOptions.adopt)"
                ).about(Trouble.INPUT_CHANGED)
        return tuple(Republication(txid, known[txid].batch) for txid in wanted)
