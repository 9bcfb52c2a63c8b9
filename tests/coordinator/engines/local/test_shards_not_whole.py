"""What an import or a drop of a topology over shards has left half-way is read by nobody as its state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from coordinator.operating.transfer.looking import chosen_state, field_line, lines_of_state, state_totals
from state import snapshot
from state.errors import StateRefusedError
from state.fault_points import installed
from state.records.declared_states import declared_states_of
from tests.support.topologies.sharded_topology import Sharded
from tests.support.topologies.typed_states import WORDS, KeepTyped

HANDLES: list[Any] = [KeepTyped.counts, KeepTyped.views, KeepTyped.recent]


class Died(BaseException):
    """The command is killed."""


def lines(sharded: Sharded, name: str) -> list[Any]:
    records = sharded.topology.records()
    return list(lines_of_state(records, chosen_state(records, name)))


def field(sharded: Sharded) -> Any:
    records = sharded.topology.records()
    return field_line(records, chosen_state(records, "counts"), WORDS[0])


def export(sharded: Sharded) -> Any:
    return sorted(line for line in sharded.exported().splitlines() if b'"state"' in line and b"txbatch" not in line)


def image(sharded: Sharded) -> Any:
    """What `verify --refold` compares."""
    records = sharded.topology.records()
    return records.image(declared_states_of(records.description()).values()).states


READERS: dict[str, Callable[[Sharded], Any]] = {
    "snapshot": lambda sharded: snapshot(sharded.client, "typed", HANDLES),
    "state list": lambda sharded: state_totals(sharded.topology.records()),
    "state get": lambda sharded: lines(sharded, "counts"),
    "state get, parts": lambda sharded: lines(sharded, "views"),
    "state get, one part": lambda sharded: lines(sharded, "views:2026-11-22"),
    "state get, ranked": lambda sharded: lines(sharded, "best"),
    "state get FIELD": field,
    "state export": export,
    "image": image,
}


def killed_at(point: str, visit: int, command: Callable[[], object]) -> bool:
    """Returns whether a command was killed at a visit of a point, and not done before."""
    visits = count()

    def visited(name: str) -> None:
        if name == point and next(visits) == visit:
            raise Died

    with installed(visited), suppress(Died):
        command()
        return False
    return True


def half_way(sharded: Sharded, packed: bytes, what: str, visit: int) -> bool:
    """Returns whether an import or a drop was killed half-way."""
    if what == "drop":
        return killed_at("drop.fenced", visit, sharded.topology.drop)
    if what == "a drop that has deleted":
        return killed_at("drop.states_deleted", visit, sharded.topology.drop)
    return killed_at("import.restored", visit, lambda: sharded.put_back(packed, int(what)))


@pytest.mark.redis
@pytest.mark.parametrize(
    ("before", "what", "visits"),
    [
        *((3, "3", 3), (3, "5", 3), (3, "2", 2), (3, "drop", 4), (3, "a drop that has deleted", 3)),
        *((1, "drop", 1), (1, "a drop that has deleted", 1)),
    ],
)
def test_what_is_half_imported_or_half_dropped_is_refused(redis_backend, before, what, visits, monkeypatch):
    monkeypatch.setattr("state.redis_shards.sharded_records.PAUSE_S", 0.0)
    monkeypatch.setattr("state.redis_shards.sharded_records.STILL_S", 0.0)
    for visit in range(visits):
        sharded = Sharded(redis_backend.client(), before)
        sharded.run(last_txid=4)
        packed, whole = sharded.exported(), {name: read(sharded) for name, read in READERS.items()}
        assert half_way(sharded, packed, what, visit)
        assert sharded.faults()
        for read in READERS.values():
            with pytest.raises(StateRefusedError, match=r"'typed' is (being dropped|not whole)"):
                read(sharded)
        sharded.put_back(packed, before)
        assert {name: read(sharded) for name, read in READERS.items()} == whole
        assert sharded.faults() == []
        sharded.topology.drop()
