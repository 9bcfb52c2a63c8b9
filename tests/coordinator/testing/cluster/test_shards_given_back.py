"""A home that has lost its record gets back from the shards what was decided, and what it was decided on."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator import LocalCluster, MemoryTransactionalSpout, RunOptions, Topology, stream
from state import HashState, StateRefusedError
from state.redis_shards import sharded_store
from state.troubles import Trouble
from tests.support.stores.builders import all_keys, lose

pytestmark = pytest.mark.redis
HOME, STATES = "{kept}:*", "{kept.*}:[ct]*s"


class NamedSpout(MemoryTransactionalSpout):
    """Has an input of this name."""

    def __init__(self, name: str, rows: int) -> None:
        super().__init__([[[f"{name}{row % 5}"] for row in range(rows)]], ["word"], 2)
        self._name = name

    def fingerprint(self) -> str:
        return self._name


def topology(rows: int, name: str = "a", into: str = "counts") -> Topology:
    return stream(NamedSpout(name, rows)).count_by("word", into=HashState(into)).topology("kept", shards=3)


BEFORE, OTHER_INPUT, OTHER_STATE = topology(6), topology(12, "b"), topology(12, into="tallies")
ACCEPTED: dict[str, tuple[Topology, RunOptions, Trouble]] = {
    "input": (OTHER_INPUT, RunOptions(adopt="unchecked"), Trouble.INPUT_CHANGED),
    "topology": (OTHER_STATE, RunOptions(accept_state_changes=True), Trouble.STATE_CHANGED),
}


def run(client: Any, given: Topology, options: RunOptions | None = None) -> dict[str, Any]:
    with LocalCluster(seed=1) as cluster:
        cluster.client = client
        running = cluster.submit(given, options=options or RunOptions())
        running.run_until_idle()
        return running.snapshot().states


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.parametrize("what", ACCEPTED)
def test_home_gets_back_what_was_accepted_with_the_decisions_made_on_it(redis_backend, is_gone, what):
    """The former input or topology is refused, and nothing changes; the accepted one needs no further acceptance."""
    client, (accepted, options, trouble) = redis_backend.client(), ACCEPTED[what]
    run(client, BEFORE)
    before = all_keys(client, HOME)
    expected = run(client, accepted, options)
    states = all_keys(client, STATES)
    lose(client, HOME, {} if is_gone else before)
    for _ in range(2):
        with pytest.raises(StateRefusedError) as refused:
            run(client, BEFORE)
        assert refused.value.trouble is trouble
        assert all_keys(client, STATES) == states
    assert run(client, accepted) == expected


@pytest.mark.parametrize("is_gone", [True, False])
def test_an_input_that_is_accepted_after_the_loss_is_the_one_of_the_runs_after_it(redis_backend, is_gone):
    client = redis_backend.client()
    run(client, BEFORE, RunOptions(last_txid=1))
    before = all_keys(client, HOME)
    run(client, BEFORE)
    lose(client, HOME, {} if is_gone else before)
    accepted, options, trouble = ACCEPTED["input"]
    expected = run(client, accepted, options)
    assert run(client, accepted) == expected
    with pytest.raises(StateRefusedError) as refused:
        run(client, BEFORE)
    assert refused.value.trouble is trouble


@pytest.mark.parametrize("is_gone", [True, False])
def test_an_input_that_shards_of_an_earlier_version_do_not_know_has_to_be_accepted(redis_backend, is_gone):
    client = redis_backend.client()
    run(client, BEFORE, RunOptions(last_txid=1))
    before = all_keys(client, HOME)
    expected = run(client, BEFORE)
    lose(client, HOME, {} if is_gone else before)
    for key in client.keys("{kept.*:txbatch:shard"):
        client.hdel(key, "source_fingerprint")
    with pytest.raises(StateRefusedError, match=sharded_store.UNKNOWN_SOURCE):
        run(client, BEFORE)
    assert run(client, BEFORE, RunOptions(adopt="unchecked")) == expected
