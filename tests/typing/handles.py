"""What type checkers make of states: right programs, and wrong ones whose errors they must find.

Nothing here runs. Lint reads it: an `assert_type` that is not so is an error, and so is an `ignore` of nothing.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, assert_type

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from state import HashState, HyperLogLogState, ListState, SetState, SortedSetState, ValueState


class Right(BaseBatchBolt, ICommitter):
    counts = HashState("counts")
    sums = HashState[float]("sums")
    names = HashState("names", str, int)
    money = HashState("money", value=Decimal, scale=2)
    notes = HashState("notes", value="json")
    since = HashState("since", date, field=(str, date))
    pairs = SetState("pairs", (str, int))
    views = HashState("views").per("day", date)
    seen = SetState("seen")
    best = SortedSetState("best", keep_highest=10)
    last = ValueState[str]("last")
    log = ListState("log", keep_last=100)
    unique = HyperLogLogState[bytes]("unique")

    def finish_batch(self) -> None:
        assert_type(self.counts, HashState[int])
        assert_type(self.counts.get("a"), int | None)
        assert_type(self.sums.get("a"), float | None)
        assert_type(self.names.get(1), str | None)
        assert_type(self.money.get_many(["a"]), dict[Any, Decimal | None])
        assert_type(self.notes.get("a"), Any | None)
        assert_type(self.since.get(("a", date(2026, 11, 27))), date | None)
        assert_type(self.pairs, SetState[Any])
        assert_type(self.views[date(2026, 11, 27)], HashState[int])
        assert_type(self.last.get(), str | None)
        assert_type(self.seen.contains_many(["a"]), dict[str, bool])
        assert_type(self.best.score("a"), float | None)
        self.counts.increment("a")
        self.counts.increment_many(["a", "b"], [1, 2])
        self.counts.increment_many({"a": 1})
        self.sums.increment("a", 3)
        self.money.increment("a", Decimal("1.25"))
        self.names.put(1, "one", expire_at=date(2027, 1, 1))
        self.notes.put("a", {"any": ["thing"]})
        self.views[date(2026, 11, 27)].increment("/page", 2)
        self.best.put_many({"a": 1.5})
        self.log.extend(["a", "b"])
        self.unique.add(b"a")


class Wrong(Right):
    def finish_batch(self) -> None:
        self.counts.increment(3.5, "text")  # type: ignore[arg-type]
        self.counts.increment("a", 2.5)  # type: ignore[arg-type]
        self.counts.put("a", "text")  # type: ignore[arg-type]
        self.names.put(1, 2)  # type: ignore[arg-type]
        self.names.put(1, "one", expire_at="soon")  # type: ignore[arg-type]
        self.seen.add(3)  # type: ignore[arg-type]
        self.best.put("a", "high")  # type: ignore[arg-type]
        self.last.put(1)  # type: ignore[arg-type]
        self.log.append(3)  # type: ignore[arg-type]
        self.unique.add("text")  # type: ignore[arg-type]
        self.views["2026-11-27"].increment("/page", "once")  # type: ignore[arg-type]
        total: int = self.counts.get("a")  # type: ignore[assignment]
        HashState[str]("names", value=int)  # type: ignore[arg-type]
        HashState("counts", scale="2")  # type: ignore[call-overload]
        assert total
