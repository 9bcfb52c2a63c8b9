"""A topology with a state of every kind and type that keeps less than all, or keeps it in a form of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from coordinator.spouts.memory import MemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, HyperLogLogState, ListState, SetState, SortedSetState, ValueState
from tests.support.runs.collecting import Collecting

TOPOLOGY_ID = "typed"
WORDS = tuple(f"wörd/{number % 7}" for number in range(40))
FAR = datetime(2100, 1, 1, tzinfo=UTC)


class KeepTyped(Collecting):
    """Keeps each word in every kind of state; refuses the empty one."""

    counts = HashState("counts")
    shares = HashState("shares", value=float, field=bytes)
    money = HashState("money", value=Decimal, scale=2, field=int)
    notes = HashState("notes", value="json")
    blob = ValueState("blob", value=bytes)
    best = SortedSetState("best", keep_highest=3)
    fewest = SortedSetState("fewest", keep_lowest=3)
    recent = ListState("recent", value="json", keep_last=4)
    unique = HyperLogLogState("unique")
    seen = SetState("seen", value=int)
    views = HashState("views").per("day", date, expire_at=lambda _: FAR)
    since = HashState("since", value=date, field=(str, date, int))
    days = HashState("days", field=date)
    ranks = SortedSetState("ranks", (str, int))
    visitors = HyperLogLogState("visitors").per("word")
    last = ValueState("last", value=str).per("shard", int)

    def execute(self, tup):
        if not tup["word"]:
            self.collector.dead_letter(tup, "no word")
        else:
            super().execute(tup)

    def finish_batch(self):
        for word in self.column("word"):
            number = int(word[-1])
            self.counts.increment(word)
            self.shares.increment(word.encode("latin-1"), 0.1)
            self.money.increment(number, Decimal("0.35"))
            self.notes.put(word, {"base64": word, "seen": [self.attempt.txid, None]})
            self.blob.put(bytes([255, number]))
            self.best.put(word, self.attempt.txid + number / 10)
            self.fewest.put(word, 7 - number)
            self.recent.append({"base64": word} if number else word)
            self.unique.add(word)
            self.seen.add(number)
            day = date(2026, 11, 21 + number)
            self.since.put((f"{word}|%7C", day, number), day)
            self.days.increment(day)
            self.views[day].increment(word)
            self.ranks.increment((word, number))
            self.visitors[word].add(str(self.attempt.txid))
            self.last[number].put(word)


STATES = [
    *("best", "blob", "counts", "days", "fewest", "last", "money", "notes", "ranks", "recent", "seen", "shares"),
    *("since", "unique", "views", "visitors"),
]


def typed_topology(words: Sequence[str] = WORDS, *, topology_id: str = TOPOLOGY_ID) -> Topology:
    """words -> keep, one task each, five words a transaction."""
    builder = TransactionalTopologyBuilder(
        topology_id, "words", MemoryTransactionalSpout({0: [[word] for word in words]}, ["word"], 5)
    )
    builder.set_committer_bolt("keep", KeepTyped()).global_grouping("words")
    return builder.build()
