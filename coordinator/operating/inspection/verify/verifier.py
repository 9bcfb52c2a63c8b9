"""Reads a stored topology from its server, and applies every check (driver).

Records are read at one moment. Keys and values are checked one by one: each must be sound at any moment, so a run may
commit meanwhile. States to compare with a refold are again read at one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coordinator.operating.inspection.finding import Finding, Weight, has_failed, ok, warn
from coordinator.operating.inspection.verify.comparison import Refolded, check_same_topology, compare
from coordinator.operating.inspection.verify.content_checks import ValuesCheck, check_keys, check_last_ids
from coordinator.operating.inspection.verify.record_checks import (
    check_aside,
    check_control,
    check_history,
    check_metadata,
    check_places,
    check_receipts,
    check_shard,
    stored_number,
)
from coordinator.operating.inspection.verify.refold import why_out_of_order
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import changes, described
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.errors import TopologyError
from state.keys import Keys
from state.records.declared_states import HASH, DescribedState, OwnedKeys
from state.records.stored_records import MISSING, STAGED_STATE, StateImage, StoredKey, StoredRecords
from state.redis_admin.all_records import RedisRecords
from state.redis_client.function_library import FORMATS
from state.redis_owner.refusals import another_life_error
from state.troubles import Trouble
from state.values.state_kind import StateKind

_COMPARED_BY = {"control", "keys", "metadata", "receipts"}
"""Subjects that have to be sound for a refold: they determine how far to recompute, and what to compare."""

FINDS = (
    "finds: control record, metadata, receipts and history lost, unreadable or in contradiction; metadata added or "
    "altered; a position or revision that was moved; half a write; quarantined batches and dead letters that cannot be "
    "read; fields and values that are not of their declared type or range; keys of another type, keys that expire "
    "undeclared or do not as declared, undeclared keys"
)
_FOUND_BY_NOTHING = (
    "quarantined batches and dead letters that were deleted, or altered and can still be read; a receipt altered alike "
    "in the history; altered metadata in the history, and lost records of it but for the last 1,024 transactions"
)
FINDS_NOT = (
    "does not find: keys, fields, members and items of a state that were deleted or added, and values replaced by "
    "others of their type (--refold does); metadata altered together with its checksum, if each transaction still has "
    f"some; {_FOUND_BY_NOTHING}"
)
NOT_REFOLDED_FINDS_NOT = FINDS_NOT.replace("--refold does", "a refold does, and none was made")
REFOLD_FINDS_NOT = (
    "does not find: input and state changed alike; changes in states that expire, and in HyperLogLogs that leave the "
    "count as it is; metadata of uncommitted transactions altered together with its checksum; "
    f"{_FOUND_BY_NOTHING}"
)

Refold = Callable[[StateImage, list[DescribedState]], Refolded]
"""Computes the original's states again, and returns the requested ones."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        committed: the last committed txid at that time; None if it cannot be read.
        findings: the findings, in the order of the checks.
        can_and_cannot: what such a verification can find, and what it cannot.
    """

    topology_id: str
    committed: int | None
    findings: tuple[Finding, ...]
    can_and_cannot: tuple[str, str]

    @property
    def is_sound(self) -> bool:
        return not has_failed(self.findings)


class Verifier:
    """Verifies one topology; made for one command."""

    def __init__(self, stored: RedisRecords) -> None:
        self._stored = stored
        self._keys = stored.keys

    def verify(self, topology: Topology | None = None, refold: Refold | None = None) -> Verification:
        """Checks everything that can be checked, and with a topology and its refold compares the states.

        Raises:
            TopologyError: the topology is not stored.
            StateRefusedError: the server refuses a command, or the topology was dropped or imported meanwhile.
            StateUnreachableError: the server does not answer.
            TransactionError: the refold failed.
        """
        records = self._stored.records()
        if all(kind == MISSING for kind in records.kinds.values()):
            sentence = f"topology {self._keys.topology_id!r} is not stored there; check its id and the server"
            raise TopologyError(sentence).about(Trouble.UNKNOWN_TOPOLOGY)
        findings = self._record_findings(records)
        owned = OwnedKeys.of(records.control.get("topology", ""))
        found = list(self._stored.stored_keys())
        redis_types = {each.key: each.kind for each in found}
        findings += check_keys(self._keys, found, owned)
        for shard in self._stored.shards:
            there = list(shard.stored_keys())
            staged = shard.entry(STAGED_STATE, StateKind.HASH, b"chain") or b""
            findings += check_shard(records, shard.keys, shard.records(), staged.decode())
            findings += check_keys(shard.keys, there, owned)
            self._add_types(redis_types, shard.keys, there, owned)
        findings += self._history_findings(records, redis_types)
        findings += self._aside_findings(redis_types)
        declared = owned.states
        for name, names in self._of_declared_kind(redis_types, owned).items():
            findings += self._values_findings(declared[name], names)
        can_and_cannot = (FINDS, FINDS_NOT)
        if topology is not None and refold is not None:
            more, is_refolded = self._refolded(topology, refold, records, findings, declared)
            findings += more
            can_and_cannot = (FINDS, NOT_REFOLDED_FINDS_NOT)
            if is_refolded:
                can_and_cannot = (f"{FINDS}; and every difference from what the input gives", REFOLD_FINDS_NOT)
        if self._stored.records().control.get("generation") != records.control.get("generation"):
            raise another_life_error(self._keys.topology_id)
        committed = stored_number(records, "committed")
        return Verification(self._keys.topology_id, committed, tuple(findings), can_and_cannot)

    def _add_types(
        self, redis_types: dict[str, str], shard: Keys, found: Iterable[StoredKey], owned: OwnedKeys
    ) -> None:
        """Adds the types of a shard's keys, under the keys that their states would have in a single slot.

        If a state has different types on two shards, the undeclared type is kept, so that it is reported.
        """
        for each in found:
            key = self._keys.state(shard.state_name(each.key))
            state = owned.state_of(self._keys, key)
            if state is None or each.kind != state.kind.redis_type or key not in redis_types:
                redis_types[key] = each.kind

    def _record_findings(self, records: StoredRecords) -> list[Finding]:
        findings = check_control(self._keys, records, known_formats=FORMATS)
        if records.control.get("format") not in FORMATS:
            return findings
        return [*findings, *check_metadata(self._keys, records), *check_receipts(self._keys, records)]

    def _history_findings(self, records: StoredRecords, kinds: Mapping[str, str]) -> list[Finding]:
        """Checks the history, unless its key has another type, which is reported already."""
        has_history = kinds.get(self._keys.history, HASH) == HASH and records.control.get("format") in FORMATS
        if not has_history or "history_from" not in records.control:
            return []
        found = dict(self._stored.history())
        return check_history(self._keys, found.items(), records.receipts, self._stored.history_from())

    def _aside_findings(self, kinds: Mapping[str, str]) -> list[Finding]:
        """Checks quarantined batches and dead letters, unless a key has another type, which is reported already."""
        keys = self._keys
        has_batches = kinds.get(keys.quarantine) == HASH
        has_letters = kinds.get(keys.state(DEAD_LETTERS_STATE)) == StateKind.SORTED_SET.value
        quarantined = self._stored.quarantined() if has_batches else {}
        return check_aside(keys, quarantined, self._stored.letters() if has_letters else ())

    def _of_declared_kind(self, kinds: Mapping[str, str], owned: OwnedKeys) -> dict[str, list[str]]:
        """Returns state -> its name, or the names of its parts, for keys that are missing or of the declared type.

        The content of other keys cannot be read.
        """
        sound: dict[str, list[str]] = {}
        for name, state in sorted(owned.states.items()):
            if state.part_type is not None:
                sound[name] = []
            elif kinds.get(self._keys.state(name), state.kind.redis_type) == state.kind.redis_type:
                sound[name] = [name]
        for key, kind in sorted(kinds.items()):
            part_of = owned.state_of(self._keys, key)
            if part_of is not None and part_of.part_type is not None and kind == part_of.kind.redis_type:
                sound[part_of.name].append(self._keys.state_name(key))
        return sound

    def _values_findings(self, state: DescribedState, names: list[str]) -> list[Finding]:
        check = ValuesCheck(self._keys, state)
        for name in names:
            for entries in self._stored.entries(name, state.kind):
                check.check(entries)
        misplaced = [each for name in names for each in self._stored.misplaced(name, state.kind)]
        found = [*check.findings(), *check_places(self._keys, misplaced)]
        return [*found, *self._last_id_findings(names)] if state.kind is StateKind.STREAM else found

    def _last_id_findings(self, names: list[str]) -> list[Finding]:
        """Compares the last ids of streams with the committed txid, which is read later, since a run may commit."""
        positions = {name: self._stored.position(name) for name in names}
        last_ids = {name: position.last_id for name, position in positions.items() if position is not None}
        committed = stored_number(self._stored.records(), "committed")
        return [] if committed is None else check_last_ids(self._keys, last_ids, committed)

    def _refolded(
        self,
        topology: Topology,
        refold: Refold,
        records: StoredRecords,
        findings: list[Finding],
        states: Mapping[str, DescribedState],
    ) -> tuple[list[Finding], bool]:
        """Compares with a refold, unless it would prove nothing; returns the findings, and whether it was made."""
        why_not = self._why_not_refolded(records, findings)
        if why_not is not None:
            return [why_not], False
        changed = check_same_topology(changes(records.control["topology"], described(topology)))
        if has_failed(changed):
            return changed, False
        expiring = sorted(name for name, state in states.items() if not state.is_lasting)
        if expiring:
            why = "what has not expired yet depends on the time at which it is looked at"
            found = f"{', '.join(map(repr, expiring))} not compared"
            changed = [*changed, warn("refold", found, why, "compare what you need before it expires")]
        for name, state in sorted(states.items()):
            if state.is_mixed:
                why = "earlier content and later additions cannot be separated"
                found = f"{name!r} not compared: it is written as it is declared from txid {state.began_txid} on"
                changed = [*changed, warn("refold", found, why, "compare what you know of it yourself")]
            elif state.began_txid > 1:
                found = f"{name!r} began at txid {state.began_txid}, and is recomputed from there"
                changed = [*changed, ok("refold", found)]
        compared = [state for state in states.values() if state.is_lasting and not state.is_mixed]
        stored = self._stored.image(compared)
        return [*changed, *compare(self._keys, stored, refold(stored, compared))], True

    def _why_not_refolded(self, records: StoredRecords, findings: list[Finding]) -> Finding | None:
        """Returns why a refold would prove nothing: records are damaged, or batches were committed out of order."""
        found = "the state was not recomputed"
        blocking = _COMPARED_BY & {each.subject for each in findings if each.weight is Weight.FAIL}
        if blocking:
            why = f"what is wrong with {' and '.join(sorted(blocking))} has to be repaired first"
            return warn("refold", found, why, "repair it, then verify again")
        why = why_out_of_order(records.metadata, has_quarantined=bool(self._stored.quarantined()))
        return warn("refold", found, why, "verify it without --refold") if why else None
