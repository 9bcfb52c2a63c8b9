"""A state gets another name with all that it holds, in one step, or nothing changes."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from coordinator import LocalCluster, RunOptions
from coordinator.operating.transfer.importing import import_state
from coordinator.operating.transfer.renaming import rename_state
from state import HashState, StateRefusedError, TopologyError
from tests.conftest import Backend
from tests.support.stores.killed import killed_everywhere
from tests.support.topologies.sharded_topology import Sharded
from tests.support.topologies.typed_states import STATES, WORDS, KeepTyped, typed_topology

pytestmark = pytest.mark.redis
GENERATIONS = (f"{number:032x}" for number in count(1))


@pytest.fixture
def typed(redis_backend: Backend) -> Sharded:
    return Sharded(redis_backend.client(), 1)


def renamed(typed: Sharded, old: str, new: str) -> int:
    topology = typed.topology
    return rename_state(topology.records(), topology.importer(), old, new, generation=next(GENERATIONS))


@pytest.mark.parametrize("state", STATES)
def test_every_kind_of_state_is_renamed_with_all_it_holds_and_the_run_continues(typed: Sharded, state: str) -> None:
    whole = typed.run()
    typed.client.flushall()
    typed.run(5)
    before = typed.entries()
    assert renamed(typed, state, "other") == 5
    after = typed.entries()
    assert {name: lines for name, lines in after.items() if name != "other"} == {
        name: lines for name, lines in before.items() if name != state
    }
    assert after["other"] == before[state]
    assert typed.faults() == []
    renamed(typed, "other", state)
    assert typed.run() == whole


def test_the_code_that_has_the_new_name_continues(typed: Sharded, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = typed.run()
    typed.client.flushall()
    typed.run(5)
    renamed(typed, "counts", "words")
    monkeypatch.setattr(KeepTyped, "counts", HashState("words"))
    states = typed.run()
    assert states["words"] == whole["counts"]
    assert {name: held for name, held in states.items() if name != "words"} == {
        name: held for name, held in whole.items() if name != "counts"
    }


def test_a_state_that_is_called_like_our_records_leaves_them_where_they_are(
    typed: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeepTyped, "counts", HashState("txbatch"))
    typed.run(5)
    own = typed.entries()["own"]
    renamed(typed, "txbatch", "words")
    assert typed.entries()["own"] == own
    assert typed.faults() == []


def test_wherever_it_is_killed_everything_or_nothing_has_changed(
    typed: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.run(3)
    before = typed.entries()

    def check() -> None:
        if "words" in typed.entries():  # it was killed after the last step
            renamed(typed, "words", "counts")
        assert typed.entries() == before
        assert not [fault for fault in typed.faults() if "Weight.WARN" not in fault]  # of what the import has left

    assert killed_everywhere(monkeypatch, "typed", lambda: renamed(typed, "counts", "words"), check) > 50
    assert typed.entries()["words"] == before["counts"]
    assert typed.faults() == []


def test_what_a_run_commits_meanwhile_is_not_lost(typed: Sharded, monkeypatch: pytest.MonkeyPatch) -> None:
    typed.run(2)

    def after_a_commit(*arguments: Any, **more: Any) -> int:
        typed.run(3)
        return import_state(*arguments, **more)

    monkeypatch.setattr("coordinator.operating.transfer.renaming.import_state", after_a_commit)
    with pytest.raises(StateRefusedError, match="was written meanwhile; nothing was changed"):
        renamed(typed, "counts", "words")
    assert "words" not in typed.entries()
    assert typed.topology.records().records().control["committed"] == "3"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("words", "other", "declares no state 'words'; declared: best, blob"),
        ("counts", "money", "has a state 'money'; choose another name"),
        ("counts", "txbatch", "the name of txbatch's own records"),
        ("counts", "a b", "state name 'a b' is not a valid name"),
    ],
)
def test_names_that_do_not_fit_are_refused(typed: Sharded, old: str, new: str, said: str) -> None:
    typed.run(1)
    with pytest.raises(TopologyError, match=said):
        renamed(typed, old, new)


def test_a_key_that_is_in_the_way_is_not_replaced(typed: Sharded) -> None:
    typed.run(1)
    typed.client.set("{typed}:other", "mine")
    with pytest.raises(TopologyError, match=r"the server holds '{typed}:other'"):
        renamed(typed, "counts", "other")
    assert typed.client.get("{typed}:other") == b"mine"


def test_what_a_former_declaration_has_left_is_not_lost(typed: Sharded, monkeypatch: pytest.MonkeyPatch) -> None:
    typed.run(1)
    monkeypatch.setattr(KeepTyped, "counts", HashState("words"))
    with LocalCluster(seed=1) as cluster:
        cluster.client = typed.client
        cluster.submit(typed_topology((*WORDS, "")), options=RunOptions(accept_state_changes=True)).run_until_idle()
    with pytest.raises(StateRefusedError, match="no longer declares, which this would lose: counts"):
        renamed(typed, "words", "other")


def test_shards_are_refused(redis_backend: Backend) -> None:
    typed = Sharded(redis_backend.client(), 3)
    typed.run(1)
    with pytest.raises(StateRefusedError, match="spread over many slots"):
        renamed(typed, "counts", "words")
