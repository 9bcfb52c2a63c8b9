"""Checks the history: each record can be read, and its receipt is the one that is stored as such. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.inspection.finding import Finding, fail, ok
from coordinator.inspection.verify.bounded import Faults, first_few
from coordinator.inspection.verify.control_check import NUMBER, restore
from state.errors import StateRefusedError
from state.keys import Keys
from state.printable import counted, one_line
from state.records.transaction_history import parse_record

SUBJECT = "history"
WHY = "a commit writes receipt and record in one step; one of the two was changed since; no run depends on the history"


def check_history(
    keys: Keys, records: Iterable[tuple[str, bytes]], receipts: Mapping[str, str], history_from: str
) -> list[Finding]:
    """Returns what is wrong with the history, or one finding that says how long it is.

    Args:
        keys: of the topology.
        records: txid and record, perhaps read later than the rest.
        receipts: txid -> receipt, as stored.
        history_from: the lowest txid that may have a record, read after the records; "" if there is none.
    """
    faults, seen = Faults(), set[str]()
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
    findings = [fail(SUBJECT, str(faults), WHY, restore(keys))] if faults.count else []
    first = int(history_from) if NUMBER.fullmatch(history_from) else None
    expected = {txid for txid in receipts if NUMBER.fullmatch(txid) and first is not None and int(txid) >= first}
    if missing := sorted(map(int, expected - seen)):
        findings.append(fail(SUBJECT, f"txids {first_few(missing)} have a receipt, and no record", WHY, restore(keys)))
    begins = "" if first is None or not seen else f", from txid {first:,} on"
    return findings or [ok(SUBJECT, f"{counted(len(seen), 'record')}{begins}; each has the receipt of its transaction")]
