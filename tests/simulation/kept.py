"""States that keep less than all, under every fault: bounded ones, and one key for each partition, that would expire.

What they hold follows from how many rows of each partition are in, however transactions were grouped or repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from state import HashState, ListState, SortedSetState
from tests.simulation.invariants import ViolatedError, state_of
from tests.simulation.memory_redis import MemoryRedis
from tests.simulation.scenario import Scenario
from tests.simulation.simulation import Simulation
from tests.simulation.workload import TOPOLOGY_ID, Audit, ReadingAudit
from tests.support.scenarios.transfers import PARTITIONS, weight

BEST, RECENT = 3, 5
FAR = datetime(2100, 1, 1, tzinfo=UTC)


class KeptAudit(Audit):
    """The usual committer, which also keeps the heaviest, the lightest and the last rows."""

    heaviest = SortedSetState("heaviest", keep_highest=BEST)
    lightest = SortedSetState("lightest", keep_lowest=BEST)
    recent = ListState("recent", keep_last=RECENT)
    rows_of = HashState("rows_of").per("partition", int, expire_at=lambda _: FAR)

    def finish_batch(self):
        super().finish_batch()
        for partition, found in self.rows.items():
            weights = {f"{partition}/{row}": float(weight(partition, row)) for row in found}
            self.heaviest.put_many(weights)
            self.lightest.put_many(weights)
            self.recent.extend(f"{partition}/{row}" for row in sorted(found))
            self.rows_of[partition].increment("n", len(found))


class KeptReadingAudit(KeptAudit, ReadingAudit):
    """The same, and reads: nothing commits early, and what parts hold has to be what was counted."""

    def finish_batch(self):
        for partition in self.rows:
            counted, of_part = self.seen.get(f"p{partition}"), self.rows_of[partition].get("n")
            assert counted == of_part, f"{counted} rows of {partition} were counted, and its part holds {of_part}"
        super().finish_batch()


class KeptSimulation(Simulation):
    """The world of a scenario with such states.

    Attributes:
        cuts: how often bounded states were seen full.
    """

    _more_states: Mapping[str, str] = {"heaviest": "float", "lightest": "float", "recent": "str", "rows_of": "int"}
    cuts = 0

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.faults.rule_out("server.tears_a_write")  # a drop cannot name parts, so halves of them may come back

    def _audit(self) -> Audit:
        return KeptReadingAudit() if self._scenario.reads else KeptAudit()

    def _changed(self, how: str) -> None:
        super()._changed(how)
        server = self.server.inner
        seen = state_of(server, TOPOLOGY_ID)["seen"]
        counts = [seen.get(f"p{partition}", 0) for partition in range(PARTITIONS)]
        self._check(server, counts)
        self.cuts += sum(counts) > RECENT

    def _check(self, server: MemoryRedis, counts: list[int]) -> None:
        held = {name: server.content().get(f"{{{TOPOLOGY_ID}}}:{name}".encode()) for name in self._more_states}
        rows = [(float(weight(p, row)), f"{p}/{row}".encode()) for p, n in enumerate(counts) for row in range(n)]
        expect("heaviest", _scores(held["heaviest"]), sorted(rows)[-BEST:])
        expect("lightest", _scores(held["lightest"]), sorted(rows)[:BEST])
        recent = [tuple(map(int, item.split(b"/"))) for item in held["recent"] or []]
        expect("number of recent rows", len(recent), min(RECENT, sum(counts)))
        for partition, count in enumerate(counts):
            last = [row for p, row in recent if p == partition]
            expect(f"recent rows of {partition}", last, list(range(count - len(last), count)))
            part = server.hash(f"{{{TOPOLOGY_ID}}}:rows_of:{partition}")
            expect(f"part {partition}", dict(part), {b"n": b"%d" % count} if count else {})


def expect(what: str, found: Any, expected: Any) -> None:
    """Raises unless both are equal."""
    if found != expected:
        raise ViolatedError(f"{what}: {found}, expected {expected}")


def _scores(held: Any) -> list[tuple[float, bytes]]:
    return sorted((score, member) for member, score in (held or {}).items())
