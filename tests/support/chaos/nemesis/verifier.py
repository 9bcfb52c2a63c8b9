"""What has to hold of everything a reader sees; written apart, from the keys as Redis shows them.

It imports nothing of the packages, nor of the job: only the formula of the input.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.scenarios.transfers import ACCOUNTS, PARTITIONS, chained, transfer, weight

HASHES = ("balances", "seen", "weights", "order")
RECEIPTS_KEPT = 1024


@dataclass(frozen=True, slots=True)
class View:
    """What one atomic read has shown.

    Attributes:
        committed: last committed txid, 0 if nothing is stored.
        last: the txid that the transaction's own data names.
        hashes: state -> field -> number.
    """

    committed: int
    last: int
    hashes: Mapping[str, Mapping[str, int]]

    def flat(self) -> dict[str, int]:
        """All of the job's own data: its name -> number."""
        fields = {f"{name}/{field}": value for name, content in self.hashes.items() for field, value in content.items()}
        return {"last": self.last, **fields}


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something that must never be seen.

    Attributes:
        kind: ``torn``, ``lost or doubled``, ``out of order``, ``went back``, ``not linearizable``, ``receipts``,
            ``ending``, ``stuck`` or ``left behind``.
        sentence: what it was.
    """

    kind: str
    sentence: str


def atomic_read(client: Any, topology_id: str) -> View:
    """Reads everything in one MULTI."""
    with client.pipeline(transaction=True) as pipeline:
        pipeline.hget(f"{{{topology_id}}}:txbatch:control", "committed")
        pipeline.get(f"{{{topology_id}}}:last")
        for name in HASHES:
            pipeline.hgetall(f"{{{topology_id}}}:{name}")
        committed, last, *hashes = pipeline.execute()
    found = [{field.decode(): int(value) for field, value in content.items()} for content in hashes]
    return View(int(committed or 0), int(last or 0), dict(zip(HASHES, found, strict=True)))


def receipts_of(client: Any, topology_id: str) -> tuple[int, dict[int, bytes]]:
    """Last committed txid and all receipts, from one moment."""
    with client.pipeline(transaction=True) as pipeline:
        pipeline.hget(f"{{{topology_id}}}:txbatch:control", "committed")
        pipeline.hgetall(f"{{{topology_id}}}:txbatch:receipts")
        committed, receipts = pipeline.execute()
    return int(committed or 0), {int(txid): receipt for txid, receipt in receipts.items()}


class _Partition:
    """The fold of every prefix of one partition, extended as it is asked for; flat arrays, since runs are long."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._balances = array("q", [0] * ACCOUNTS)
        self._weights, self._orders = array("q", [0]), array("q", [0])

    def at(self, count: int) -> tuple[Counter[str], int, int]:
        """Balances, sum of weights and checksum of the order after so many rows."""
        while len(self._weights) <= count:
            row = len(self._weights) - 1
            debit, credit, amount = transfer(self._partition, row)
            self._balances.extend(self._balances[-ACCOUNTS:])
            self._balances[int(debit[1:]) - ACCOUNTS] -= amount
            self._balances[int(credit[1:]) - ACCOUNTS] += amount
            row_weight = weight(self._partition, row)
            self._weights.append(self._weights[-1] + row_weight)
            self._orders.append(chained(self._orders[-1], row_weight))
        balances = self._balances[count * ACCOUNTS : (count + 1) * ACCOUNTS]
        return Counter({f"a{i}": money for i, money in enumerate(balances)}), self._weights[count], self._orders[count]


class Verifier:
    """Compares views with the fold of the input; one for all topologies, as they share it."""

    def __init__(self) -> None:
        self._partitions = [_Partition(number) for number in range(PARTITIONS)]

    def complaints(self, view: View, *, has_order: bool) -> list[Complaint]:
        """What is wrong with a view; empty if it is that of whole transactions.

        Args:
            view: what was read.
            has_order: whether the job keeps a checksum of the order.
        """
        found = []
        if view.committed != view.last:
            found.append(Complaint("torn", f"committed is {view.committed}, but the data is that of txid {view.last}"))
        total = sum(view.hashes["balances"].values())
        if total:
            found.append(Complaint("torn", f"balances add up to {total} at txid {view.committed}"))
        seen = [view.hashes["seen"].get(f"p{number}", 0) for number in range(PARTITIONS)]
        expected: Counter[str] = Counter()
        for number, count in enumerate(seen):
            balances, weights, order = self._partitions[number].at(count)
            expected.update(balances)
            stored = view.hashes["weights"].get(f"p{number}", 0)
            if stored != weights:
                sentence = f"the {count} rows of partition {number} are not its first at txid {view.committed}"
                found.append(Complaint("lost or doubled", sentence))
            elif has_order and view.hashes["order"].get(f"p{number}", 0) != order:
                sentence = f"the first {count} rows of partition {number} are not in order at txid {view.committed}"
                found.append(Complaint("out of order", sentence))
        balances = Counter()
        for shard, amount in view.hashes["balances"].items():
            balances[shard.partition("/")[0]] += amount
        if any(balances[account] != expected[account] for account in {*balances, *expected}):
            sentence = f"balances after {seen} rows are {dict(balances)}, expected {dict(expected)}"
            found.append(Complaint("lost or doubled", sentence))
        return found

    @staticmethod
    def complaints_at_end(view: View, end: int) -> list[Complaint]:
        """What is wrong with the state of a run that says it is done; see `complaints` for the rest.

        Args:
            view: what was read.
            end: rows of each partition.
        """
        seen = [view.hashes["seen"].get(f"p{number}", 0) for number in range(PARTITIONS)]
        if seen != [end] * PARTITIONS:
            return [Complaint("lost or doubled", f"a run says it is done after {seen} rows of {end} each")]
        return []


class Receipts:
    """The receipts of one topology: without a gap, and never another answer unless the server has lost writes."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def forget(self) -> None:
        """The server may have lost writes: what it holds from now on is what counts."""
        self._known.clear()

    def complaints(self, committed: int, receipts: Mapping[int, bytes]) -> list[Complaint]:
        """What is wrong with them."""
        found = []
        wanted = set(range(max(1, committed - RECEIPTS_KEPT + 1), committed + 1))
        if set(receipts) != wanted:
            off = sorted(wanted ^ set(receipts))[:5]
            found.append(Complaint("receipts", f"receipts up to txid {committed} are missing or too many: {off}"))
        changed = [txid for txid, receipt in receipts.items() if self._known.get(txid, receipt) != receipt]
        if changed:
            found.append(Complaint("receipts", f"receipts of txids {changed[:5]} have changed"))
        self._known = dict(receipts)
        return found
