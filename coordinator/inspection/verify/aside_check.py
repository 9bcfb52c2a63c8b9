"""Checks what was set aside: records of quarantined batches, and dead letters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.inspection.finding import Finding, fail, ok
from coordinator.inspection.verify.bounded import Faults
from coordinator.inspection.verify.control_check import restore
from state.commits.dead_letters import letter_of
from state.commits.quarantine import unpack_record
from state.errors import StateRefusedError
from state.keys import Keys
from state.printable import counted

SUBJECT = "set aside"
WHY = "what cannot be read cannot be replayed"


def check_aside(keys: Keys, quarantined: Mapping[str, bytes], letters: Iterable[tuple[bytes, bytes]]) -> list[Finding]:
    """Returns what is wrong, or one finding that says how much was set aside; none if nothing was.

    Args:
        keys: of the topology.
        quarantined: txid -> record, as stored.
        letters: member and score, as stored.
    """
    faults, letter_count = Faults(), 0
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
    if faults.count:
        return [fail(SUBJECT, str(faults), WHY, restore(keys))]
    if not quarantined and not letter_count:
        return []
    records, held = counted(len(quarantined), "record"), counted(letter_count, "dead letter")
    return [ok(SUBJECT, f"{records} of quarantined batches and {held} can be read")]
