"""A state, or a part of it, is computed again from the input, and put in place in one step, or nothing changes."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from coordinator import FixedBatchesSpout, HashState, RunOptions, TextFiles, run, stream
from coordinator.operating.inspection.verify.refold import on_this_machine
from coordinator.operating.transfer.importing import import_state
from coordinator.operating.transfer.redoing import Redone, redo_state
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import EngineName
from state.codec import pack
from state.errors import StateRefusedError, TopologyError
from tests.conftest import Backend
from tests.support.cli.in_process import txbatch
from tests.support.stores.killed import killed_everywhere
from tests.support.topologies.sharded_topology import Sharded
from tests.support.topologies.typed_states import STATES, WORDS, typed_topology

pytestmark = pytest.mark.redis
GENERATIONS = (f"{number:032x}" for number in count(1))


@pytest.fixture
def typed(redis_backend: Backend) -> Sharded:
    return Sharded(redis_backend.client(), 1, url=redis_backend.url)


def redone(typed: Sharded, text: str, topology: Topology | None = None) -> Redone:
    target, given = typed.topology, topology or typed_topology((*WORDS, ""))
    run_to = on_this_machine(__name__, master="local[*]", conf={}, engine=EngineName.LOCAL)
    return redo_state(
        target.records(),
        target.importer(),
        given,
        text,
        generation=next(GENERATIONS),
        run_to=run_to,
        server=lambda: nullcontext(str(typed.url)),
    )


def comparable(entries: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Without the registers of HyperLogLogs, which also hold an estimate that was asked for."""
    return {name: [line for line in lines if "registers" not in line] for name, lines in entries.items()}


def lose(typed: Sharded, state: str) -> None:
    """Deletes the keys of a state."""
    for key in typed.client.keys("{typed}:*"):
        if key.split(b":")[1] == state.encode():
            typed.client.delete(key)


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_was_lost_is_computed_again_and_the_run_continues(typed: Sharded, state: str) -> None:
    whole = typed.run()
    typed.client.flushall()
    typed.run(5)
    before = typed.entries()
    lose(typed, state)
    assert redone(typed, state) == (5, 0)
    assert comparable(typed.entries()) == comparable(before)
    assert typed.faults() == []
    assert typed.run() == whole


def test_of_one_part_the_others_stay_as_they_are(typed: Sharded) -> None:
    typed.run(5)
    before = typed.entries()
    typed.client.hset("{typed}:views:2026-11-22", "wrong", 7)
    typed.client.hset("{typed}:views:2026-11-23", "kept", 7)
    redone(typed, "views:2026-11-22")
    typed.client.hdel("{typed}:views:2026-11-23", "kept")
    assert typed.entries() == before


def test_a_state_that_was_added_later_holds_then_what_every_transaction_would_have_written(
    redis_backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"{word}\n" for word in WORDS))
    url = redis_backend.url

    def counted(*names: str) -> Topology:
        lines = stream(TextFiles(str(tmp_path / "lines.txt"), 5))
        for name in names:
            lines.count_by("line", into=HashState(name))
        return lines.topology("typed")

    run(counted("counts"), redis_url=url, engine="local", options=RunOptions(last_txid=3))
    run(counted("counts", "late"), redis_url=url, engine="local", options=RunOptions(last_txid=5))
    typed = Sharded(redis_backend.client(), 1, url=url)
    assert redone(typed, "late", counted("counts", "late")) == (5, 0)
    assert typed.client.hgetall("{typed}:late") == typed.client.hgetall("{typed}:counts")
    run(counted("counts", "late"), redis_url=url, engine="local")
    assert typed.client.hgetall("{typed}:late") == typed.client.hgetall("{typed}:counts")
    assert typed.faults() == []


def test_rows_that_changed_code_refuses_are_counted_since_no_list_has_them(redis_backend: Backend) -> None:
    def summed(least: int) -> Topology:
        rows = stream(FixedBatchesSpout([[["a", 1], ["b", -5]], [["c", -2]]], ["key", "number"]))
        good = rows.dead_letter_if(lambda number: number < least, "too small", of="number")
        return good.sum_by("key", "number", into=HashState("sums")).topology("typed")

    run(summed(-4), redis_url=redis_backend.url, engine="local")
    typed = Sharded(redis_backend.client(), 1, url=redis_backend.url)
    assert redone(typed, "sums", summed(0)) == (2, 1)
    assert typed.client.hgetall("{typed}:sums") == {b"a": b"1"}


@pytest.mark.parametrize(
    "state", ["recent", *(pytest.param(state, marks=pytest.mark.nightly) for state in ("counts", "best", "last"))]
)
def test_wherever_it_is_killed_the_old_state_or_the_new_one_is_there(
    typed: Sharded, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    typed.run(3)
    right = typed.entries()
    lose(typed, state)
    wrong, found = typed.entries(), []

    def check() -> None:
        found.append([right, wrong].index(typed.entries()))
        lose(typed, state)

    assert killed_everywhere(monkeypatch, "typed", lambda: redone(typed, state), check) > 50
    assert {*found} == {0, 1}
    assert typed.entries() == right


def test_what_a_run_commits_meanwhile_is_not_lost(typed: Sharded, monkeypatch: pytest.MonkeyPatch) -> None:
    typed.run(2)

    def after_a_commit(*arguments: Any, **more: Any) -> int:
        typed.run(3)
        return import_state(*arguments, **more)

    monkeypatch.setattr("coordinator.operating.transfer.redoing.import_state", after_a_commit)
    with pytest.raises(StateRefusedError, match="was written meanwhile; nothing was changed"):
        redone(typed, "counts")
    assert typed.topology.records().records().control["committed"] == "3"


def test_another_input_is_refused(redis_backend: Backend, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{word}\n" for word in WORDS))
    topology = stream(TextFiles(str(file), 5)).count_by("line", into=HashState("counts")).topology("typed")
    run(topology, redis_url=redis_backend.url, engine="local")
    typed = Sharded(redis_backend.client(), 1, url=redis_backend.url)
    before = typed.entries()
    file.write_text(file.read_text().replace("1", "2"))
    with pytest.raises(StateRefusedError, match="its input is another one now"):
        redone(typed, "counts", topology)
    assert typed.entries() == before


@pytest.mark.parametrize(
    ("text", "shards", "message"),
    [
        ("sums", 1, "declares no state 'sums'"),
        ("views:yesterday", 1, "part 'yesterday' of state 'views' is not a date"),
        ("counts", 3, "spread over many slots"),
    ],
)
def test_what_cannot_be_computed_again_is_refused(redis_backend: Backend, text: str, shards: int, message: str) -> None:
    typed = Sharded(redis_backend.client(), shards, url=redis_backend.url)
    typed.run(1)
    with pytest.raises((TopologyError, StateRefusedError), match=message):
        redone(typed, text)


def test_before_the_first_commit_and_after_a_republication_it_is_refused(typed: Sharded) -> None:
    typed.run(3)
    typed.client.hset("{typed}:txbatch:control", "committed", "0")
    with pytest.raises(TopologyError, match="cannot be computed again: nothing is committed; run it first"):
        redone(typed, "counts")
    typed.client.hset("{typed}:txbatch:control", "committed", "3")
    before = typed.entries()
    typed.client.hset("{typed}:txbatch:metadata", "replayed:3", pack([1, 0]))
    with pytest.raises(TopologyError, match="republished batches were committed out of it; run the topology under"):
        redone(typed, "counts")
    typed.client.hdel("{typed}:txbatch:metadata", "replayed:3")
    assert typed.entries() == before


def test_the_command_says_what_was_computed(typed: Sharded, capsys: pytest.CaptureFixture[str]) -> None:
    typed.run(5)
    before = typed.entries()
    typed.client.delete("{typed}:counts")
    factory = ("--factory", f"{typed_topology.__module__}:typed_topology")
    assert txbatch("state", "redo", "typed", "counts", *factory, "--engine", "local", "--redis", str(typed.url)) == 0
    assert "state 'counts' of topology 'typed' is computed again, as of txid 5" in capsys.readouterr().out
    assert typed.entries() == before
