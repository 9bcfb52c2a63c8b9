"""What each example has to leave in Redis, found by a plain loop over the data that it makes.

An answer is state name -> what the state holds, numbers by name; for a state with parts, that of each part.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.clickstream import expected as clickstream
from examples.ledger import BANK, TRANSFER

Answer = dict[str, dict[str, Any]]


def lines_of(folder: Path, pattern: str) -> Iterator[str]:
    """The lines of all files, in the order in which an example reads them."""
    for path in sorted(folder.glob(pattern)):
        yield from path.read_text(encoding="utf-8").splitlines()


def dedupe(folder: Path) -> Answer:
    """Totals of the different payments, and how many deliveries there were."""
    delivered = [json.loads(line) for line in lines_of(folder, "*.jsonl")]
    different = {payment["id"]: payment for payment in delivered}
    cents: Counter[str] = Counter()
    for payment in different.values():
        cents[payment["customer"]] += payment["cents"]
    deliveries = {"first": len(different), "repeated": len(delivered) - len(different)}
    return {"cents": dict(cents), "deliveries": deliveries}


def top_k(folder: Path) -> Answer:
    """Units sold of each product, and the ten orders of the highest price."""
    units: Counter[str] = Counter()
    cents: dict[str, int] = {}
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                units[row["product"]] += int(row["units"])
                cents[row["order"]] = int(row["cents"])
    largest = sorted(cents.items(), key=lambda pair: (pair[1], pair[0].encode()))[-10:]
    return {"best_sellers": dict(units), "largest_orders": dict(largest)}


@dataclass
class Books:
    """What a ledger has to hold.

    Attributes:
        balances: account -> cents.
        refused: component -> numbers of the transfers it refuses; for lines that cannot be read, how many came before.
    """

    balances: Counter[str] = field(default_factory=Counter)
    refused: dict[str, list[int]] = field(
        default_factory=lambda: {"transfers": [], "check": [], "balances": []},
    )


def books(folder: Path) -> Books:
    """Makes all transfers one after the other."""
    kept = Books()
    for line in lines_of(folder, "*.jsonl"):
        try:
            number, source, target, cents = (json.loads(line)[name] for name in TRANSFER)
        except json.JSONDecodeError:
            kept.refused["transfers"].append(len(kept.refused["transfers"]))
            continue
        if cents <= 0 or source == target:
            kept.refused["check"].append(number)
        elif source != BANK and kept.balances[source] < cents:
            kept.refused["balances"].append(number)
        else:
            kept.balances[source] -= cents
            kept.balances[target] += cents
    return kept


def ledger(folder: Path) -> Answer:
    """Balances, and a dead letter for each refusal."""
    kept = books(folder)
    letters = range(sum(map(len, kept.refused.values())))
    return {"balances": dict(kept.balances), "txbatch:dead_letters": {str(number): number for number in letters}}


def streaming_bridge(folder: Path) -> Answer:
    """Clicks of each page."""
    pages: Counter[str] = Counter()
    for line in lines_of(folder, "*.json"):
        row = json.loads(line)
        pages[row["page"]] += row["clicks"]
    return {"pages": dict(pages)}


ANSWERS: dict[str, Callable[[Path], Answer]] = {
    "clickstream": clickstream,
    "dedupe": dedupe,
    "ledger": ledger,
    "streaming_bridge": streaming_bridge,
    "top_k": top_k,
}
"""Example -> what finds its answer in the folder of its data."""

SORTED_SETS = ("{ledger}:txbatch:dead_letters", "{top_k}:best_sellers", "{top_k}:largest_orders")


def fill(client: Any, topology_id: str, answer: Answer) -> None:
    """Stores an answer as the topology would."""
    for name, held in answer.items():
        key = f"{{{topology_id}}}:{name}"
        if topology_id == "clickstream" and name == "views":
            for day, pages in held.items():
                client.zadd(f"{key}:{day}", pages)
        elif key in SORTED_SETS:
            client.zadd(key, held)
        else:
            client.hset(key, mapping=held)
