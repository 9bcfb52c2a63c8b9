"""Takes over from earlier runs: reads their records, decides, and only then becomes the owner.

A start is refused before it fences a running coordinator and before it stores anything. The run's first write stores a
changed input or topology, so a start that fails leaves both as they were.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.spouts.partition_cut import partition_of
from coordinator.spouts.run_so_far import FormerInput
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import changes, check_topology, described, states_of
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, MetadataLog, Notes
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.options import RunOptions, adopted_words
from coordinator.transactional.start.input_checks import (
    InputQuestion,
    accepted_notes,
    check_coordinator_metadata,
    check_input,
    check_partition_metadata,
    check_scopes,
)
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from coordinator.transactional.start.spout_start import SpoutStart
from state.codec import pack
from state.errors import StateRefusedError
from state.fault_points import reached
from state.keys import parse_metadata_field
from state.kinds.state_family import StateFamily
from state.records.declared_states import with_beginnings, with_former
from state.records.topology_overview import FoundTopology
from state.redis_owner.arguments import Descriptions
from state.redis_owner.store import RedisStore
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What a run has taken over, and the changes since the run before.

    Attributes:
        committed_txid: last committed transaction, 0 if there is none.
        metadata: stored metadata, checked.
        notes: txid -> notes, of transactions that were cut and are not committed.
        description: the topology's description, as stored from now on.
        source_fingerprint: the input's fingerprint, as stored from now on.
        notices: the changes that were accepted, one sentence each.
        republications: the quarantined batches that the run republishes, None in a run that reads its input.
    """

    committed_txid: int
    metadata: MetadataLog
    notes: Notes
    description: str
    source_fingerprint: str
    notices: tuple[str, ...] = ()
    republications: tuple[Republication, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Settled:
    """The result of checking the records of earlier runs; the fingerprint is stored from now on.

    A run that reads no input compares none, and keeps the stored fingerprint for the next run.
    """

    source_fingerprint: str
    notices: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)


def _packed(found: FoundTopology) -> bytes:
    """Returns bytes by which to compare two finds; values would not do, since a NaN is not equal to itself."""
    return pack([found.committed_txid, found.source_fingerprint, found.topology, found.metadata])


class Takeover:
    """One start of a topology (driver).

    Args:
        store: the store, on a server that was checked.
        start: the spout's calls; it has made the spout.
        options: the run's options, with the changes that the user accepts.
        choice: the quarantined batches or dead letters to republish; None in a run that reads its input.
    """

    def __init__(
        self,
        topology: Topology,
        store: RedisStore,
        start: SpoutStart,
        options: RunOptions,
        *,
        choice: RepublishChoice | LetterChoice | None = None,
    ) -> None:
        self._topology, self._store, self._start = topology, store, start
        self._options, self._choice = options, choice

    def refuse(self) -> None:
        """Raises the error with which `take` would be refused now; changes nothing and fences nobody.

        Raises:
            StateRefusedError, SourceError: see `take`.
        """
        found = self._store.look()
        if found is not None:
            self._settled(found, self._given())
        self._refuse_unknown_states(found)

    def take(self, *, nonce: str, new_generation: str) -> TakenOver:
        """Becomes the owner, see `RedisStore.acquire`.

        Raises:
            StateRefusedError, SourceError: the run cannot continue from the stored records, or only if the user accepts
                the changes.
        """
        given, found = self._given(), self._store.look()
        settled = _Settled(given.source_fingerprint) if found is None else self._settled(found, given)
        existing = self._refuse_unknown_states(found)
        stored = _with_history(given.topology, found, existing)
        republications = self._republications(given.source_fingerprint)
        reached("start.looked")
        acquired = self._store.acquire(
            nonce=nonce,
            new_generation=new_generation,
            topology=stored,
            source_fingerprint=settled.source_fingerprint,
            accepted=found,
        )
        if _packed(acquired) != _packed(found or FoundTopology(0, settled.source_fingerprint, stored, {})):
            # the run that is now fenced wrote meanwhile, or shards have restored what home had lost
            settled = self._settled(acquired, given)
            stored = _with_history(given.topology, acquired, existing)
            self._store.describe(settled.source_fingerprint, stored)
        for notice in settled.notices:
            _LOG.warning("topology %r: %s", self._topology.topology_id, notice)
        metadata = self._log(acquired.metadata, acquired.committed_txid)
        metadata.replace_notes(settled.notes)
        notes = self._notes(metadata, acquired.committed_txid)
        return TakenOver(
            acquired.committed_txid,
            metadata,
            notes,
            stored,
            settled.source_fingerprint,
            settled.notices,
            republications,
        )

    def _given(self) -> Descriptions:
        return Descriptions(self._start.fingerprint(), described(self._topology))

    def _republications(self, fingerprint: str) -> tuple[Republication, ...] | None:
        """Returns the batches to republish, chosen before anybody is fenced."""
        if self._choice is None:
            return None
        if isinstance(self._choice, LetterChoice):
            return self._choice.chosen(self._topology, self._store.dead_letters.all())
        return self._choice.chosen(
            self._topology.topology_id,
            self._store.quarantined(),
            source_fingerprint=fingerprint,
            adopt=self._options.adopt,
        )

    def _refuse_unknown_states(self, found: FoundTopology | None) -> list[str]:
        """Refuses to add to state without records: they were lost, or the keys belong to somebody else.

        Returns the states without records that the user has accepted.
        """
        if found is None and self._store.has_records():
            return []  # `acquire` reports what is wrong with them
        recorded = set() if found is None else states_of(found.topology)
        handles = self._topology.states
        unrecorded = [handle for handle in handles if handle.name not in recorded]
        with_parts = {handle.name for handle in unrecorded if isinstance(handle, StateFamily)}
        existing = self._store.existing_states(
            sorted({handle.name for handle in unrecorded} - with_parts), sorted(with_parts)
        )
        if existing and not self._options.accept_state_changes:
            topology_id, count = self._topology.topology_id, self._topology.shard_count
            shards = f" --shards {count}" if count > 1 else ""
            raise StateRefusedError(
                f"topology {topology_id!r} has no record of writing {', '.join(map(repr, existing))}, but the server "
                "holds such state; restore or delete it; either the records were lost, or something else wrote the "
                "state; to add to what is there, give --accept-state-changes (in Python "
                "RunOptions.accept_state_changes); otherwise restore a consistent backup of the server, choose another "
                "topology id, or start over with "
                f"`txbatch drop {topology_id} {' '.join(f'--also {name}' for name in existing)}{shards}`"
            ).about(Trouble.STATE_CHANGED)
        return existing

    def _refuse_another_kind(self, found: FoundTopology, log: MetadataLog) -> None:
        """Refuses an opaque spout after a spout without partitions, which stored none of the positions it needs."""
        scopes = {parse_metadata_field(field)[0] for field in found.metadata}
        if self._start.kind.is_opaque and COORDINATOR_SCOPE in scopes and not log.last_positions():
            topology_id = self._topology.topology_id
            raise StateRefusedError(
                f"topology {topology_id!r} is committed up to txid {found.committed_txid} and was run with another "
                "kind of spout, from whose position an opaque one cannot continue; run it with that one, start over "
                f"with `txbatch drop {topology_id}`, or choose another topology id"
            ).about(Trouble.OTHER_SOURCE)

    def _settled(self, found: FoundTopology, given: Descriptions) -> _Settled:
        """Returns the changes since earlier runs, if all of them are accepted."""
        topology_id, committed = self._topology.topology_id, found.committed_txid
        fingerprint = given.source_fingerprint
        said = check_topology(
            topology_id,
            changes(found.topology, given.topology),
            committed_txid=committed,
            accept_state_changes=self._options.accept_state_changes,
        )
        log = self._log(found.metadata, committed)
        if not committed and not found.metadata:  # nothing was read yet, so any input is accepted
            return _Settled(fingerprint, tuple(said))
        self._check_metadata(log, committed)
        self._refuse_another_kind(found, log)
        former = FormerInput(
            fingerprint=found.source_fingerprint,
            is_same=found.source_fingerprint == fingerprint,
            last_txid=log.number_of(max(log.coordinator, default=committed)),
            last=log.coordinator[max(log.coordinator)] if log.coordinator else None,
            committed_txid=log.number_of(committed),
            pending=tuple(value for txid, value in sorted(log.coordinator.items()) if txid > committed),
            positions={partition_of(scope): position for scope, position in log.last_positions().items()},
            notes=log.notes(self._notes(log, committed)),
        )
        if self._choice is not None and not former.pending:  # what is republished was read before
            return _Settled(found.source_fingerprint, tuple(said))
        is_checked = "unchecked" not in (adopted_words(self._options.adopt) or ())
        change = self._start.compare(former) if is_checked else None
        said += check_input(InputQuestion(topology_id, fingerprint, former, change), self._options.adopt)
        return _Settled(fingerprint, tuple(said), {} if change is None else accepted_notes(change, self._options.adopt))

    def _log(self, stored: Mapping[str, Any], committed_txid: int) -> MetadataLog:
        return MetadataLog(stored, is_opaque=self._start.kind.is_opaque, committed_txid=committed_txid)

    def _notes(self, metadata: MetadataLog, committed_txid: int) -> Notes:
        """Returns the notes of transactions that were cut and are not committed."""
        calls, spout, stored = self._start.calls, self._start.spout, metadata.coordinator
        return {txid: calls.notes(spout, stored[txid]) for txid in stored if txid > committed_txid}

    def _check_metadata(self, metadata: MetadataLog, committed_txid: int) -> None:
        """Refuses metadata with a gap; an opaque spout stores nothing ahead, so its metadata cannot have one."""
        topology_id = self._topology.topology_id
        check_scopes(topology_id, metadata.partitions)
        if self._start.kind.is_opaque:
            return
        counts = metadata.coordinator
        check_coordinator_metadata(topology_id, counts, committed_txid=committed_txid)
        if self._start.kind.has_partitions:
            check_partition_metadata(topology_id, metadata.partitions, counts, committed_txid=committed_txid)


def _with_history(description: str, found: FoundTopology | None, existing: Iterable[str]) -> str:
    """Returns the topology's description, completed with the stored history of its states.

    Args:
        description: the description of the run that begins.
        found: the stored topology; None before the first run.
        existing: states that have data although no run is known to have written it.
    """
    stored, next_txid = ("", 1) if found is None else (found.topology, found.committed_txid + 1)
    return with_former(with_beginnings(description, stored, next_txid, existing), stored)
