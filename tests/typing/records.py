"""What type checkers make of bolts that take and emit records; see handles.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, assert_type

from coordinated_bolt.components.basic_bolts import BaseBasicBolt, BasicOutputCollector
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.function_bolt import bolt


class Visit(NamedTuple):
    user: str
    seconds: int


@dataclass
class Stay:
    user: str
    minutes: float


class Right(BaseBatchBolt):
    output_fields = Stay

    def execute(self, visit: Visit) -> None:
        assert_type(visit.seconds, int)
        self.collector.emit(Stay(visit.user, visit.seconds / 60))
        self.collector.emit_all([Stay(visit.user, 1.0), ("bob", 2.0), ["ann", 3]])
        self.collector.dead_letter(visit, "why not")


class RightBasic(BaseBasicBolt):
    output_fields = ("user", "minutes")

    def execute(self, stay: Stay, collector: BasicOutputCollector) -> None:
        assert_type(stay.minutes, float)
        collector.emit([stay.user, stay.minutes])


@bolt(output_fields="minutes")
def minutes(visit: Visit) -> Iterator[float]:
    assert_type(visit.seconds, int)
    yield visit.seconds / 60


class Wrong(BaseBatchBolt):
    output_fields = Visit

    def execute(self, visit: Visit) -> None:
        self.collector.emit(Visit(visit.user, "long"))  # type: ignore[arg-type]
        self.collector.emit(3)  # type: ignore[arg-type]
        self.collector.emit(visit.page)  # type: ignore[attr-defined]
