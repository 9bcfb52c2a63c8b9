"""Checks the records of a topology: control, metadata, shards, receipts, history, quarantine and dead letters. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coordinator.operating.inspection.finding import Finding
from coordinator.operating.inspection.verify.content_checks import Faults, PartCheck, first_few, restore
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, is_own_scope
from coordinator.transactional.start.input_checks import (
    check_coordinator_metadata,
    check_partition_metadata,
    check_scopes,
)
from state.commits.dead_letters import letter_of
from state.commits.quarantine import unpack_record
from state.errors import StateRefusedError
from state.keys import Keys, is_chain, parse_metadata_field
from state.metadata import MetadataSum, chain_of, unpack_metadata
from state.printable import counted, one_line
from state.records.declared_states import declared_states_of
from state.records.shard_faults import ShardFault, shard_fault
from state.records.stored_records import MISSING, StoredRecords
from state.records.transaction_history import RECEIPTS_KEPT, Receipt, parse_receipt, parse_record
from state.values.state_kind import MAX_INTEGER

NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
# an import has one request, and a development version had no revision
_FENCE = re.compile(r"[1-9][0-9]*:([0-9]+:)?[0-9a-f]{32}(-[0-9]+)?")
_FORMS = {
    "fence": (_FENCE, "a number, a revision and a token"),
    "generation": (re.compile(r"[0-9a-f]{32}"), "32 hexadecimal digits"),
    "committed": (NUMBER, "a whole number"),
    "revision": (NUMBER, "a whole number"),
    "metadata_sum": (re.compile(r"[0-9a-f]{16}"), "16 hexadecimal digits"),
    "last_call": (re.compile(r"|[0-9a-f]{16}"), "16 hexadecimal digits or nothing"),
}
_WHY_MISSING = "a commit writes its receipts with the committed txid, in one step; one of the two was changed since"
_WHY_ALTERED = "all transactions of a group have one digest and one range, and groups follow one another"
_WHY_HISTORY = (
    "a commit writes receipt and record in one step; one of the two was changed since; no run depends on the history"
)


def check_control(keys: Keys, records: StoredRecords, *, known_formats: Sequence[str]) -> list[Finding]:
    """Returns the faults of the control record, or one finding with its content."""
    check, control = PartCheck(keys, "control"), records.control
    if records.kinds.get(keys.control) == MISSING:
        check.damaged(
            f"key {keys.control!r} is gone, and other keys of the topology are there",
            "something deleted it; no run can continue without it, and nothing else can be judged",
        )
        return check.findings()
    if control.get("format") not in known_formats:
        check.damaged(
            f"stored format is {control.get('format', '')!r}, expected {known_formats[0]!r}",
            "another version of txbatch wrote it, or it is damaged; nothing else can be judged",
            f"use the version that wrote it, or {restore(keys)}",
        )
        return check.findings()
    for name, (pattern, form) in _FORMS.items():
        if not pattern.fullmatch(held := control.get(name, "")):
            found = f"field {name!r} of key {keys.control!r} holds {one_line(held, 100)!r}, expected {form}"
            check.damaged(found, "the next run would be refused, or continue from a wrong place")
    _check_numbers(check, records)
    _check_descriptions(check, control)
    if control.get("begun") != control.get("ended"):
        found = f"write {control.get('begun', '')} was applied over {control.get('ended', '')}"
        why = "part of a write is in the state, as after a power failure; a run would be refused as TORN"
        check.damaged(found, why)
    if "dropping" in control:
        why = "until that drop is finished, the topology cannot run"
        check.doubtful("a drop was begun and not finished", why, f"run `txbatch drop {keys.topology_id}`")
    return check.findings(
        f"committed up to txid {control.get('committed', '')}, revision {control.get('revision', '')}, "
        f"owner {control.get('fence', '').partition(':')[0]}, descriptions readable"
    )


def check_shard(home: StoredRecords, keys: Keys, shard: StoredRecords, staged_chain: str) -> list[Finding]:
    """Returns the faults of a shard's record, or one finding with the txid that it has applied.

    `staged_chain` is the chain of its staged group. While a run commits, a shard may be one group behind for a moment.
    """
    check, own, chain = PartCheck(keys, "shard"), shard.control, chain_of(home.metadata)
    committed, decided = own.get("committed", ""), home.control.get("committed", "")
    for name in ("fence", "generation", "committed", "revision") if own else ():
        pattern, form = _FORMS[name]
        if not pattern.fullmatch(held := own.get(name, "")):
            found = f"field {name!r} of key {keys.control!r} holds {one_line(held, 100)!r}, expected {form}"
            check.damaged(found, "the next run would be refused, or continue from a wrong place")
    if own.get("begun") != own.get("ended"):
        check.damaged(f"key {keys.control!r} counts half a write", "part of a write is in the state of this shard")
    if check.findings():
        return check.findings()
    found = f"key {keys.control!r} has applied txid {committed or 0}, and home has decided {decided or 0}"
    match shard_fault({**home.control, "chain": chain}, own):
        case ShardFault.DROPPING:
            remedy = f"run `txbatch drop {keys.owner_id}` again"
            check.doubtful(f"key {keys.control!r} is being dropped", "a drop has begun, and has not ended", remedy)
        case ShardFault.GONE:
            check.damaged(f"key {keys.control!r} is gone", "something deleted it, or its server came back without it")
        case ShardFault.OTHER_LIFE:
            check.damaged(
                f"key {keys.control!r} is of another life of the topology",
                "home was imported, dropped or lost without it, or an import has not ended: then import again",
            )
        case ShardFault.BEHIND if staged_chain == chain:
            why = "a run is under way, or was killed before it applied what it has staged"
            check.doubtful(found, why, "run the topology, which applies it")
        case ShardFault.BEHIND:
            check.damaged(found, "its server has lost writes, and nothing can give them back")
        case ShardFault.AHEAD:
            why = "home's server has lost writes, or a run has committed meanwhile"
            check.doubtful(found, why, "run the topology, which takes back what shards have kept")
        case ShardFault.OTHER_HISTORY:
            why = "one of their servers was set back alone"
            check.damaged(f"key {keys.control!r} has another history than home", why)
    return check.findings(f"{keys.topology_id} has applied everything up to txid {committed or 0}")


def check_places(keys: Keys, misplaced: Sequence[tuple[str, bytes]]) -> list[Finding]:
    """Returns a finding about fields of a state on wrong shards; nothing if all are on their own shards."""
    if not misplaced:
        return []
    check = PartCheck(keys, "places")
    shown = first_few(f"{field!r} in {key!r}" for key, field in misplaced)
    check.damaged(
        f"fields lie on shards that are not theirs: {shown}",
        "nobody reads them there; something else wrote them",
        "delete them",
    )
    return check.findings()


def check_receipts(keys: Keys, records: StoredRecords) -> list[Finding]:
    """Returns the faults of the receipts, or one finding with the complete range.

    Each kept txid has to have a receipt, and the receipts' groups have to be in order, without overlap.
    """
    committed = stored_number(records, "committed")
    if committed is None:
        return []
    check, first = PartCheck(keys, "receipts"), max(1, committed - RECEIPTS_KEPT + 1)
    receipts = _parsed_receipts(check, records)
    expected = set(range(first, committed + 1))
    if missing := sorted(expected - receipts.keys()):
        found = f"txids {first_few(missing)} have no receipt, although txid {committed} is committed"
        check.damaged(found, _WHY_MISSING)
    if surplus := sorted(receipts.keys() - expected):
        found = f"txids {first_few(surplus)} have a receipt, expected those from {first} to {committed} only"
        check.damaged(found, _WHY_MISSING)
    faults = Faults()
    for txid in sorted(receipts):
        if fault := _misfit(txid, receipts, first):
            faults.add(fault)
    if faults:
        check.damaged(faults, _WHY_ALTERED)
    last = receipts.get(committed)
    if last is not None and not check.findings() and last.last_txid != committed:
        found = f"txid {committed} was published with a group that ends at {last.last_txid}, but it is the last one"
        check.damaged(found, _WHY_MISSING)
    if not committed:
        return check.findings("none, and nothing is committed")
    groups = len({(receipt.first_txid, receipt.digest) for receipt in receipts.values()})
    return check.findings(f"complete from txid {first} to {committed}, published in {counted(groups, 'group')}")


def check_history(
    keys: Keys, records: Iterable[tuple[str, bytes]], receipts: Mapping[str, str], history_from: str
) -> list[Finding]:
    """Returns the faults of the history, or one finding with its length.

    Each record has to be readable, with the same receipt as the stored one. The records may have been read after the
    receipts, and `history_from`, the lowest txid that may have a record, after the records.
    """
    check, faults, seen = PartCheck(keys, "history"), Faults(), set[str]()
    for txid, record in records:
        seen.add(txid)
        if not NUMBER.fullmatch(txid):
            faults.add(f"field {one_line(txid, 40)!r} is not a txid")
            continue
        try:
            parse_record(keys, int(txid), record)
        except StateRefusedError:
            faults.add(f"the record of txid {txid} cannot be read")
            continue
        receipt = record.partition(b"\n")[0].decode()
        if receipts.get(txid, receipt) != receipt:
            faults.add(f"the record of txid {txid} has receipt {receipt!r}, and the receipt is {receipts[txid]!r}")
    if faults:
        check.damaged(faults, _WHY_HISTORY)
    first = int(history_from) if NUMBER.fullmatch(history_from) else None
    expected = {txid for txid in receipts if NUMBER.fullmatch(txid) and first is not None and int(txid) >= first}
    if missing := sorted(map(int, expected - seen)):
        check.damaged(f"txids {first_few(missing)} have a receipt, and no record", _WHY_HISTORY)
    begins = "" if first is None or not seen else f", from txid {first:,} on"
    return check.findings(f"{counted(len(seen), 'record')}{begins}; each has the receipt of its transaction")


def check_aside(keys: Keys, quarantined: Mapping[str, bytes], letters: Iterable[tuple[bytes, bytes]]) -> list[Finding]:
    """Returns the faults of quarantined batches and dead letters, or one finding with their numbers, if there are any.

    `quarantined` is txid -> record, `letters` are members with their scores, all as stored.
    """
    check, faults, letter_count = PartCheck(keys, "set aside"), Faults(), 0
    for txid, packed in quarantined.items():
        try:
            unpack_record(keys, txid, packed)
        except StateRefusedError as error:
            faults.add(str(error).partition("; ")[0])
    for member, score in letters:
        letter_count += 1
        try:
            of_txid = int(float(score))
            if not member.startswith(f"{of_txid}.".encode()):
                raise StateRefusedError(f"a dead letter of txid {of_txid} has the number of another")
            letter_of(of_txid, member)
        except (StateRefusedError, ValueError, OverflowError) as error:
            faults.add(str(error).partition("; ")[0])
    if faults:
        check.damaged(faults, "what cannot be read cannot be republished")
    if not quarantined and not letter_count:
        return []
    records, held = counted(len(quarantined), "record"), counted(letter_count, "dead letter")
    return check.findings(f"{records} of quarantined batches and {held} can be read")


def stored_number(records: StoredRecords, field: str) -> int | None:
    """Returns a number in the control record; None if the field does not hold one."""
    text = records.control.get(field, "")
    return int(text) if NUMBER.fullmatch(text) else None


def _check_numbers(check: PartCheck, records: StoredRecords) -> None:
    committed, revision = stored_number(records, "committed"), stored_number(records, "revision")
    if committed is None or revision is None:
        return
    if max(committed, revision) > MAX_INTEGER:
        found = f"committed is {committed} and revision {revision}, one of them beyond {MAX_INTEGER}"
        check.damaged(found, "numbers beyond that are not exact on the server")
    fence = records.control.get("fence", "")
    owners = int(fence.partition(":")[0]) if _FENCE.fullmatch(fence) else 0
    groups = len({text.partition(" ")[2] for text in records.receipts.values()})
    if revision < owners + groups and "dropping" not in records.control:
        found = (
            f"revision is {revision}, fewer writes than the {owners} starts of runs and {groups} commits on record need"
        )
        check.damaged(found, "the revision counts every write; an older one would let writes be applied a second time")


def _check_descriptions(check: PartCheck, control: Mapping[str, str]) -> None:
    description = control.get("topology", "")
    try:
        declared_states_of(description)
    except ValueError as error:
        found = f"the stored description {one_line(description, 100)!r} of the topology cannot be read ({error})"
        check.damaged(found, "the types of its states are unknown, so their content is not checked")
    if not control.get("source_fingerprint"):
        why = "the next run cannot tell whether its input is the same"
        check.damaged("the fingerprint of the input is missing", why)


def _parsed_receipts(check: PartCheck, records: StoredRecords) -> dict[int, Receipt]:
    faults, receipts = Faults(), {}
    for txid, text in records.receipts.items():
        try:
            receipt = parse_receipt(check.keys, text)
        except StateRefusedError:
            receipt = None
        if receipt is None or not NUMBER.fullmatch(txid):
            faults.add(f"field {one_line(txid, 40)!r} holds {one_line(text, 100)!r}")
        else:
            receipts[int(txid)] = receipt
    if faults:
        found = f"key {check.keys.receipts!r} has what is not a receipt: {faults}"
        check.damaged(found, "txbatch does not write such text")
    return receipts


def _misfit(txid: int, receipts: dict[int, Receipt], first_kept: int) -> str:
    """Returns how a receipt contradicts itself or the receipt below it; "" if it does not."""
    own = receipts[txid]
    if not own.first_txid <= txid <= own.last_txid:
        return f"txid {txid} was published with txids {own.first_txid} to {own.last_txid}, which do not hold it"
    below = receipts.get(txid - 1)
    if below is None or txid <= first_kept:
        return ""
    if own.first_txid == txid:
        if below.last_txid != txid - 1:
            return f"txid {txid} begins a group, but the one below ends at txid {below.last_txid}"
    elif (below.digest, below.first_txid, below.last_txid) != (own.digest, own.first_txid, own.last_txid):
        return f"txids {txid - 1} and {txid} are of one group, but their receipts differ"
    return ""


_WHY_SUM = "each write stores a checksum over all metadata, so entries were lost, altered or added since the last write"
_WHY_CHAIN = "a run could not tell where the missing transaction begins: the next start is refused"


def check_metadata(keys: Keys, records: StoredRecords) -> list[Finding]:
    """Returns the faults of the metadata, or one finding with the number of fields."""
    check = PartCheck(keys, "metadata")
    found_sum, stored_sum = MetadataSum(records.metadata), records.control.get("metadata_sum", "")
    if str(found_sum) != stored_sum:
        fields = counted(len(records.metadata), "field")
        check.damaged(
            f"checksum over {fields} of key {keys.metadata!r} is {found_sum}, expected {stored_sum}", _WHY_SUM
        )
    readable: dict[str, Any] = {}
    for field, packed in sorted(records.metadata.items()):
        try:
            found = unpack_metadata(keys, {field: packed})
            readable |= {} if is_chain(field) else found
        except StateRefusedError as error:
            check.damaged(_without_remedy(error), _WHY_SUM)
    committed = stored_number(records, "committed")
    if committed is not None:
        _check_chain(check, readable, committed)
    pending = sum(parse_metadata_field(field)[1] > (committed or 0) for field in readable)
    return check.findings(
        f"{counted(len(readable), 'field')}, {pending:,} of them of transactions not committed yet; the checksum "
        "matches, no transaction is missing"
    )


def _check_chain(check: PartCheck, metadata: Mapping[str, Any], committed: int) -> None:
    """Applies the checks of a run's start to the metadata, unless a txid is too large to be compared on the server."""
    scopes: dict[str, dict[int, Any]] = {}
    for field, value in metadata.items():
        scope, txid = parse_metadata_field(field)
        scopes.setdefault(scope, {})[txid] = value
    largest = max((txid for by_txid in scopes.values() for txid in by_txid), default=0)
    if largest > MAX_INTEGER:
        found = f"an entry has txid {largest}, beyond {MAX_INTEGER}"
        check.damaged(found, "txids beyond that are not exact on the server")
        return
    topology_id = check.keys.topology_id
    counts = scopes.pop(COORDINATOR_SCOPE, {})
    partitions = {scope: by_txid for scope, by_txid in scopes.items() if not is_own_scope(scope)}

    def run(start_check: Callable[[], None]) -> None:
        try:
            start_check()
        except StateRefusedError as error:
            check.damaged(_without_remedy(error), _WHY_CHAIN)

    run(lambda: check_scopes(topology_id, partitions))
    if counts:
        run(lambda: check_coordinator_metadata(topology_id, counts, committed_txid=committed))
        if partitions:
            run(lambda: check_partition_metadata(topology_id, partitions, counts, committed_txid=committed))
    elif committed and not partitions:
        check.doubtful(
            f"committed up to txid {committed}, but no position in the input is stored",
            "only an opaque spout without partitions leaves it so; after any other, the next run is refused",
            restore(check.keys),
        )


def _without_remedy(error: StateRefusedError) -> str:
    """Returns an error's message without its remedy: the finding has its own."""
    return str(error).rpartition("; ")[0] or str(error)
