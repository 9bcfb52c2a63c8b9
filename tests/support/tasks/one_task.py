"""One coordinated bolt outside a run, fed by hand."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt, CoordTuples, IdTuple, RegularTuples
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.transport.frames import FrameKind
from state.codec import unpack
from tests.support.tasks.wirings import Sent, attempt, origin_of, wire

A = attempt(1)


class OneTask:
    """A bolt as a task has it, and what it has sent; `wiring` is how it is wired."""

    def __init__(self, bolt: IComponent, **wiring: Any) -> None:
        self.wiring = wire(bolt, **wiring)
        self.sent = Sent()
        self.bolt = CoordinatedBolt(self.wiring, self.wiring.outboxes(self.sent.carrier))

    def regular(self, source, *values, of=A):
        self.bolt.on(of, [RegularTuples([(origin_of(self.wiring, of, source), [[value] for value in values])])])

    def coord(self, source, tuple_count, of=A):
        self.bolt.on(of, [CoordTuples.of(source, tuple_count)])

    def id(self, of=A):
        self.bolt.on(of, [IdTuple()])

    def end(self, of=A):
        return self.bolt.end(of)

    def finish(self, tuple_count, of=A):
        """Ends it after a report of task 1."""
        self.coord(1, tuple_count, of)
        return self.end(of)

    def reports(self):
        return [(f.target, unpack(f.payload)) for f in self.sent if f.kind is FrameKind.COORD]

    def rows(self):
        runs = [run for frame in self.sent if frame.kind is FrameKind.REGULAR for run in unpack(frame.payload)]
        return [row for _, rows in runs for row in rows]
