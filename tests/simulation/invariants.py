"""What has to hold after everything that happens; written apart from the code it watches.

It looks at the server's keys as Redis would show them, and at the input. It imports nothing of what decides.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

Transfer = Callable[[int, int], tuple[str, str, int]]


class Hashes(Protocol):
    """What holds hashes."""

    def hash(self, key: str) -> Mapping[bytes, bytes]:
        """One of them, empty if there is none."""


class ViolatedError(AssertionError):
    """An invariant does not hold."""


class Ledger:
    """The fold of every prefix of the input, computed once.

    Args:
        partitions, rows: size of the input.
        transfer: (partition, row) -> debit, credit, amount.
        weight: (partition, row) -> a number that tells the row from any other.
    """

    def __init__(self, partitions: int, rows: int, transfer: Transfer, weight: Callable[[int, int], int]) -> None:
        self._partitions, self._rows = partitions, rows
        self._balances: list[list[Counter[str]]] = []
        self._weights: list[list[int]] = []
        for partition in range(partitions):
            balances, weights = [Counter[str]()], [0]
            for row in range(rows):
                debit, credit, amount = transfer(partition, row)
                after = Counter(balances[-1])
                after[debit] -= amount
                after[credit] += amount
                balances.append(after)
                weights.append(weights[-1] + weight(partition, row))
            self._balances.append(balances)
            self._weights.append(weights)

    def check(self, state: Mapping[str, Mapping[str, int]]) -> None:
        """Whether balances and weights are those of as many rows as were counted."""
        seen = [state["seen"].get(f"p{partition}", 0) for partition in range(self._partitions)]
        if any(not 0 <= count <= self._rows for count in seen):
            raise ViolatedError(f"there are {self._rows} rows in each partition, and {seen} were counted")
        expected: Counter[str] = Counter()
        for partition, count in enumerate(seen):
            expected.update(self._balances[partition][count])
            found = state["weights"].get(f"p{partition}", 0)
            if found != self._weights[partition][count]:
                raise ViolatedError(
                    f"the {count} rows counted of partition {partition} are not its first: {found}, "
                    f"expected {self._weights[partition][count]}"
                )
        balances: Counter[str] = Counter()
        for shard, amount in state["balances"].items():
            balances[shard.partition("/")[0]] += amount
        if any(balances[account] != expected[account] for account in {*balances, *expected}):
            raise ViolatedError(f"balances after {seen} rows are {dict(balances)}, expected {dict(expected)}")

    def is_whole(self, state: Mapping[str, Mapping[str, int]]) -> bool:
        """Whether all rows are in."""
        return all(state["seen"].get(f"p{partition}", 0) == self._rows for partition in range(self._partitions))


class Records:
    """The txids and receipts on the server: without gap, and never another answer."""

    def __init__(self) -> None:
        self._receipts: dict[int, bytes] = {}
        self._committed = 0

    def forget(self) -> None:
        """The server itself holds something else now; it is watched from here on."""
        self._receipts, self._committed = {}, 0

    def check(self, committed: int, receipts: Mapping[int, bytes], kept: int) -> None:
        """Compares with what was seen last."""
        if committed < self._committed:
            raise ViolatedError(f"txid {self._committed} was committed, and then only {committed}")
        expected = set(range(max(1, committed - kept + 1), committed + 1))
        if not expected <= receipts.keys():
            raise ViolatedError(f"no receipt of txids {sorted(expected - receipts.keys())}, committed {committed}")
        if len(receipts) > kept:
            raise ViolatedError(f"there are {len(receipts)} receipts, and at most {kept} are kept")
        if max(receipts, default=0) > committed:
            raise ViolatedError(f"there is a receipt of txid {max(receipts)}, and committed is {committed}")
        for txid, receipt in self._receipts.items():
            if txid in receipts and receipts[txid] != receipt:
                raise ViolatedError(f"the receipt of txid {txid} was {receipt!r}, and is {receipts[txid]!r}")
        self._receipts, self._committed = dict(receipts), committed


class History:
    """The records of committed transactions: the last ones are there, and hold what was stored of them, unchanged."""

    def __init__(self) -> None:
        self._records: dict[int, bytes] = {}
        self._metadata: dict[bytes, bytes] = {}

    def forget(self) -> None:
        """The server itself holds something else now; it is watched from here on."""
        self._records, self._metadata = {}, {}

    def check(self, server: Hashes, topology_id: str, kept: int) -> None:
        """Compares with receipts and metadata, and with what was seen last."""
        if b"dropping" in server.hash(f"{{{topology_id}}}:txbatch:control"):
            return  # a drop deletes the history before the receipts
        committed, receipts = records_of(server, topology_id)
        stored = server.hash(f"{{{topology_id}}}:txbatch:history")
        records = {int(txid): bytes(record) for txid, record in stored.items()}
        expected = set(range(max(1, committed - kept + 1), committed + 1))
        if records.keys() != expected:
            raise ViolatedError(f"the history holds txids {sorted(records)}, expected {sorted(expected)}")
        for txid, record in records.items():
            if record.partition(b"\n")[0] != receipts[txid]:
                raise ViolatedError(f"the record of txid {txid} is {record!r}, and its receipt {receipts[txid]!r}")
            if not record.startswith(self._records.get(txid, b"")):
                raise ViolatedError(f"the record of txid {txid} was {self._records[txid]!r}, and is {record!r}")
        metadata = server.hash(f"{{{topology_id}}}:txbatch:metadata")
        self._check_moved({field for field in self._metadata if field not in metadata}, records)
        self._records, self._metadata = records, dict(metadata)

    def _check_moved(self, gone: set[bytes], records: Mapping[int, bytes]) -> None:
        """What is no longer stored as metadata is in the record of its transaction, byte for byte."""
        for field in gone:
            scope, _, txid = field.rpartition(b":")
            record, value = records.get(int(txid)), self._metadata[field]
            if record is None or scope == b"replayed" or scope.startswith(b"note."):
                continue
            if b"\n%d %d\n%s%s" % (len(scope), len(value), scope, value) not in record:
                raise ViolatedError(f"metadata {field!r} is gone, and not in the record of its txid: {record!r}")


def check_metadata_bound(server: Hashes, topology_id: str, *, window: int, partitions: int) -> None:
    """What is stored of transactions is bounded by the window, one more for the last committed one."""
    count, most = len(server.hash(f"{{{topology_id}}}:txbatch:metadata")), (window + 1) * (partitions + 1)
    if count > most:
        raise ViolatedError(f"{count} fields of metadata are stored, at most {most} for a window of {window}")


@dataclass(frozen=True, slots=True)
class Program:
    """What a run is started with; it may be another one at every start.

    Attributes:
        topology: what it runs.
        fingerprint: of its input.
        states: name -> value type of the states it declares.
        adopts: whether the user accepts another input.
        accepts_states: whether the user accepts that states have changed.
    """

    topology: Any
    fingerprint: str
    states: dict[str, str]
    adopts: bool
    accepts_states: bool


class Takeovers:
    """Input and states that another run has used are taken over only by a run that was told to accept it."""

    def __init__(self) -> None:
        self._input, self._states, self._committed, self._has_metadata = "", dict[str, str](), 0, False

    def check(self, server: Hashes, topology_id: str, *, is_write: bool, programs: Mapping[str, Program]) -> None:
        """Compares with what was there before.

        Args:
            server: what it holds now.
            is_write: whether the owner of the topology has written.
            programs: nonce of a run -> what it was started with.
        """
        control = server.hash(f"{{{topology_id}}}:txbatch:control")
        if is_write:
            nonce = control[b"fence"].decode().rpartition(":")[2].partition("-")[0]
            self._check(programs[nonce])
        self._input = control.get(b"source_fingerprint", b"").decode()
        self._states = _declared(control.get(b"topology", b"{}"))
        self._committed = int(control.get(b"committed", 0))
        self._has_metadata = bool(server.hash(f"{{{topology_id}}}:txbatch:metadata"))

    def _check(self, program: Program) -> None:
        was_read = self._committed or self._has_metadata
        if was_read and self._input != program.fingerprint and not program.adopts:
            raise ViolatedError(
                f"a run on {program.fingerprint!r} continues in silence from txid {self._committed} of {self._input!r}"
            )
        changed = {name for name, value in self._states.items() if program.states.get(name) != value}
        if self._committed and changed and not program.accepts_states:
            raise ViolatedError(
                f"a run that declares {dict(program.states)} continues in silence from txid {self._committed}, whose "
                f"states are {self._states}"
            )


@lru_cache(maxsize=64)
def _declared(description: bytes) -> dict[str, str]:
    """Name -> value type of the states in a stored description."""
    return {name: state["value"] for name, state in json.loads(description).get("states", {}).items()}


def state_of(server: Hashes, topology_id: str) -> dict[str, dict[str, int]]:
    """The state's hashes, as any client would read them."""
    return {
        name: {field.decode(): int(value) for field, value in server.hash(f"{{{topology_id}}}:{name}").items()}
        for name in ("balances", "seen", "weights")
    }


def records_of(server: Hashes, topology_id: str) -> tuple[int, dict[int, bytes]]:
    """The last committed txid, and txid -> receipt."""
    committed = server.hash(f"{{{topology_id}}}:txbatch:control").get(b"committed", 0)
    receipts = server.hash(f"{{{topology_id}}}:txbatch:receipts")
    return int(committed), {int(txid): value for txid, value in receipts.items()}
