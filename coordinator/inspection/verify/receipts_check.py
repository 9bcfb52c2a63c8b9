"""Checks the receipts: one for each txid that has to have one, their groups in order and without overlap. Pure."""

from __future__ import annotations

from coordinator.inspection.finding import Finding, fail, ok
from coordinator.inspection.verify.bounded import Faults, first_few
from coordinator.inspection.verify.control_check import NUMBER, committed_of, restore
from state.errors import StateRefusedError
from state.keys import Keys
from state.printable import counted, one_line
from state.records.receipt import RECEIPTS_KEPT, Receipt, parse_receipt
from state.records.stored_records import StoredRecords

SUBJECT = "receipts"
WHY_MISSING = "a commit writes its receipts with the committed txid, in one step; one of the two was changed since"
WHY_ALTERED = "all transactions of a group have one digest and one range, and groups follow one another"


def check_receipts(keys: Keys, records: StoredRecords) -> list[Finding]:
    """Returns what is wrong with the receipts, or one finding that says which range is complete."""
    committed = committed_of(records)
    if committed is None:
        return []
    first = max(1, committed - RECEIPTS_KEPT + 1)
    findings, receipts = _parsed(keys, records)
    expected = set(range(first, committed + 1))
    if missing := sorted(expected - receipts.keys()):
        found = f"txids {first_few(missing)} have no receipt, although txid {committed} is committed"
        findings.append(fail(SUBJECT, found, WHY_MISSING, restore(keys)))
    if surplus := sorted(receipts.keys() - expected):
        found = f"txids {first_few(surplus)} have a receipt, expected those from {first} to {committed} only"
        findings.append(fail(SUBJECT, found, WHY_MISSING, restore(keys)))
    faults = Faults()
    for txid in sorted(receipts):
        if fault := _misfit(txid, receipts, first):
            faults.add(fault)
    if faults.count:
        findings.append(fail(SUBJECT, str(faults), WHY_ALTERED, restore(keys)))
    last = receipts.get(committed)
    if last is not None and not findings and last.last_txid != committed:
        found = f"txid {committed} was published with a group that ends at {last.last_txid}, but it is the last one"
        findings.append(fail(SUBJECT, found, WHY_MISSING, restore(keys)))
    return findings or [ok(SUBJECT, _complete(receipts, first, committed))]


def _complete(receipts: dict[int, Receipt], first: int, committed: int) -> str:
    if not committed:
        return "none, and nothing is committed"
    groups = len({(receipt.first_txid, receipt.digest) for receipt in receipts.values()})
    return f"complete from txid {first} to {committed}, published in {counted(groups, 'group')}"


def _parsed(keys: Keys, records: StoredRecords) -> tuple[list[Finding], dict[int, Receipt]]:
    faults, receipts = Faults(), {}
    for txid, text in records.receipts.items():
        try:
            receipt = parse_receipt(keys, text)
        except StateRefusedError:
            receipt = None
        if receipt is None or not NUMBER.fullmatch(txid):
            faults.add(f"field {one_line(txid, 40)!r} holds {one_line(text, 100)!r}")
        else:
            receipts[int(txid)] = receipt
    if not faults.count:
        return [], receipts
    found = f"key {keys.receipts!r} has what is not a receipt: {faults}"
    return [fail(SUBJECT, found, "txbatch does not write such text", restore(keys))], receipts


def _misfit(txid: int, receipts: dict[int, Receipt], first_kept: int) -> str:
    """Returns how a receipt contradicts itself or its neighbour below, "" if it does not."""
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
