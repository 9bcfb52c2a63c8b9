"""Why a value is what it is: the transactions that changed it, the input of each, and what each contributed (driver).

A topology's input is read again, as for a refold, on a scratch server, a transaction at a time; the value is read after
each commit. Nothing is written to the topology itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from coordinator.operating.inspection.verify.refold import Runner, ScratchServer, refuse_another_state, scratch_of
from coordinator.operating.inspection.wording import words_of_spout, words_or_values
from coordinator.operating.transfer.looking import ChosenState, chosen_state
from coordinator.operating.transfer.state_lines import lines_of
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from coordinator.watching.run_observer import GroupCommitted, Observation
from state.errors import TopologyError
from state.records.stored_records import StoredPiece
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.topology import RedisTopology
from state.values.state_kind import StateKind, ValueType

_KINDS = (StateKind.VALUE, StateKind.HASH, StateKind.SET, StateKind.SORTED_SET)
TRIES = 100
"""How often a value is read until no commit falls between its reading and that of the committed txid."""


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction that changed the value.

    Attributes:
        before, after: the value as in an export; None if there was none; True for a member of a set.
        added: the difference, of numbers; None for other values.
        contained: the input of the transaction, in words.
    """

    txid: int
    before: Any
    after: Any
    added: Any
    contained: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value comes from.

    Attributes:
        name: of the state, or of its part.
        field: field or member; None for a state of one value.
        committed: the last transaction that was looked at.
        stored: the value on the topology's server.
        found: the value that the input gives.
        changes: the last ones; there were `change_count`.
    """

    topology_id: str
    name: str
    field: str | None
    committed: int
    stored: Any
    found: Any
    changes: tuple[Change, ...]
    change_count: int

    @property
    def is_explained(self) -> bool:
        return bool(self.stored == self.found)


def explain_value(
    records: RedisRecords,
    topology: Topology,
    state: str,
    field: str | None,
    *,
    last: int,
    run_to: Runner,
    server: ScratchServer,
) -> Provenance:
    """Computes one value again and keeps its last changes.

    Args:
        records: the topology as it is stored.
        topology: as its factory makes it, of a kind that `refuse_unrepeatable` lets pass.
        state: as in its key, with its part.
        field: field or member; None for a state of one value.
        last: most changes to return.
        run_to: runs a topology.
        server: opens the scratch server.

    Raises:
        TopologyError: the value cannot be computed again, or there is none.
        TransactionError: the run failed.
    """
    chosen = chosen_state(records, state)
    _refuse(records, chosen, field, topology)
    stored, committed = _stored_value(records, chosen, field)
    scratch = scratch_of(topology)
    with server() as url, closing(RedisTopology(url, scratch.topology_id)) as found:
        began = chosen.state.began_txid
        if 1 < began <= committed:
            run_to(scratch, url, RunOptions(last_txid=began - 1, notifies_spout=False), ())
            found.empty([chosen.state])
        watch = _ValueWatch(found, scratch, chosen, field, last)
        options = RunOptions(last_txid=committed, notifies_spout=False, commit_group_max=1)
        run_to(scratch, url, options, [watch])
        if watch.error is not None:
            raise watch.error
    if stored is None and watch.value is None and not watch.count:
        shown = "" if field is None else f" for {field!r}"
        raise TopologyError(f"state {chosen.name!r} of topology {topology.topology_id!r} has never had a value{shown}")
    kept = tuple(watch.changes)
    return Provenance(topology.topology_id, chosen.name, field, committed, stored, watch.value, kept, watch.count)


class _ValueWatch:
    """An observer that reads a value after each commit, and keeps its last changes."""

    def __init__(self, found: RedisTopology, topology: Topology, chosen: ChosenState, field: str | None, last: int):
        self.value: Any = None
        self.count = 0
        self.changes: deque[Change] = deque(maxlen=last)
        self.error: Exception | None = None
        self._found, self._topology, self._chosen, self._field = found, topology, chosen, field

    def __call__(self, observation: Observation) -> None:
        if not isinstance(observation, GroupCommitted) or self.error is not None:
            return
        try:
            self._look(observation.attempts[0].txid)
        except Exception as error:  # noqa: BLE001 - an observer's error would be logged, and the answer be wrong
            self.error = error

    def _look(self, txid: int) -> None:
        value = _value(self._found.records(), self._chosen, self._field)
        if value == self.value:
            return
        known = self._found.transaction(txid)
        metadata: Mapping[str, Any] = {} if known is None else known.metadata
        contained = words_or_values(metadata, words_of_spout(self._topology.spout.spec, metadata))
        added = _difference(self.value, value, self._chosen.state.value_type)
        self.changes.append(Change(txid, self.value, value, added, tuple(contained)))
        self.count, self.value = self.count + 1, value


def _refuse(records: RedisRecords, chosen: ChosenState, field: str | None, topology: Topology) -> None:
    """Refuses a value that another run cannot compute, or that is not named in full."""
    state, subject = chosen.state, f"state {chosen.name!r} of topology {topology.topology_id!r}"
    if not chosen.has_part:
        raise TopologyError(f"{subject} has parts; name one, as in {chosen.name}:PART")
    if state.kind not in _KINDS:
        stream = "; the id of an entry begins with the txid that wrote it" if state.kind is StateKind.STREAM else ""
        raise TopologyError(f"{subject} cannot be explained: a {state.kind.value} has no fields{stream}")
    if (state.kind is StateKind.VALUE) != (field is None):
        raise TopologyError(
            f"{subject} has many entries; name a field or member"
            if field is None
            else f"{subject} is one value; leave {field!r} out"
        )
    if not state.is_lasting:
        raise TopologyError(f"{subject} cannot be explained: it expires, so its content depends on the time")
    if state.is_mixed:
        raise TopologyError(
            f"{subject} cannot be explained: it held something before txid {state.began_txid}, when its declaration "
            f"changed; `txbatch state redo {topology.topology_id} {state.name}` computes all of it as declared"
        )
    refuse_another_state(records, records.records(), topology, subject)


def _stored_value(records: RedisRecords, chosen: ChosenState, field: str | None) -> tuple[Any, int]:
    """Returns the value, and the last transaction that was committed when it was read."""
    for _ in range(TRIES):
        moment, value = records.moment(), _value(records, chosen, field)
        committed = records.fields("committed")["committed"]
        if records.moment() == moment:
            return value, int(committed)
    raise TopologyError(f"topology {records.keys.topology_id!r} commits faster than it can be read; stop its run first")


def _value(records: RedisRecords, chosen: ChosenState, field: str | None) -> Any:
    kind = chosen.state.kind
    if field is None:
        entries = [entry for piece in records.entries(chosen.name, kind) for entry in piece]
    else:
        stored = records.entry(chosen.name, kind, field.encode())
        entries = [] if stored is None else [(field.encode(), stored)]
    for line in lines_of(StoredPiece(chosen.name, kind, entries), {chosen.state.name: chosen.state}):
        return line.get("value", line.get("score", True))
    return None


def _difference(before: Any, after: Any, declared: ValueType) -> Any:
    """Returns what was added; a Decimal is given, and returned, as in an export, as a text."""
    if declared is ValueType.DECIMAL and type(after) is str:
        return str(Decimal(after) - Decimal(before or 0))
    return after - (before or 0) if type(after) in (int, float) else None
