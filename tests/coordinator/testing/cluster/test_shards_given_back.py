"""A home that has lost its record gets back from the shards what was decided, and what it was decided on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.memory import MemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState
from state.errors import StateRefusedError
from state.redis_shards import sharded_store
from state.troubles import Trouble
from tests.support.stores.builders import all_keys, lose
from tests.support.topologies.sharded_topology import over

pytestmark = pytest.mark.redis
HOME = "{kept}:*"


class Keep(BaseBatchBolt, ICommitter):
    """Counts words."""

    counts = HashState("counts")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.words: list[str] = []

    def execute(self, tup):
        self.words.append(tup["word"])

    def finish_batch(self):
        for word in self.words:
            self.counts.increment(word)


class KeepMore(Keep):
    """Counts words, and letters."""

    letters = HashState("letters")

    def finish_batch(self):
        super().finish_batch()
        for word in self.words:
            self.letters.increment(word[0])


class NamedSpout(MemoryTransactionalSpout):
    """Has an input of this name."""

    def __init__(self, name: str, rows: int) -> None:
        super().__init__([[[f"{name}{row % 5}"] for row in range(rows)]], ["word"], 2)
        self._name = name

    def fingerprint(self) -> str:
        return self._name


def topology(rows: int, name: str = "a", bolt: type[BaseBatchBolt] = Keep) -> Topology:
    spout = NamedSpout(name, rows)
    builder = TransactionalTopologyBuilder("kept", "words", spout)
    builder.set_committer_bolt("keep", bolt()).global_grouping("words")
    return over(builder.build(), 3)


BEFORE, OTHER_INPUT, MORE = topology(6), topology(12, "b"), topology(12, bolt=KeepMore)
ACCEPTED: dict[str, tuple[Topology, RunOptions, Trouble]] = {
    "input": (OTHER_INPUT, RunOptions(adopt="unchecked"), Trouble.INPUT_CHANGED),
    "topology": (MORE, RunOptions(accept_state_changes=True), Trouble.STATE_CHANGED),
}


def run(client: Any, given: Topology, options: RunOptions | None = None) -> dict[str, Any]:
    with LocalCluster(seed=1) as cluster:
        cluster.client = client
        running = cluster.submit(given, options=options or RunOptions())
        running.run_until_idle()
        return running.snapshot().states


LOSSES: dict[str, Callable[[dict[bytes, bytes]], dict[bytes, bytes]]] = {
    "gone": lambda before: {},
    "behind": lambda before: before,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("what", ACCEPTED)
def test_home_gets_back_what_was_accepted_with_the_decisions_made_on_it(redis_backend, loss, what):
    """A run on what was given before is refused, and changes nothing; one on what was accepted goes on."""
    client, (accepted, options, trouble) = redis_backend.client(), ACCEPTED[what]
    run(client, BEFORE)
    before = all_keys(client, HOME)
    expected = run(client, accepted, options)
    states = all_keys(client, "*:counts")
    lose(client, HOME, LOSSES[loss](before))
    for _ in range(2):
        with pytest.raises(StateRefusedError) as refused:
            run(client, BEFORE)
        assert refused.value.trouble is trouble
        assert all_keys(client, "*:counts") == states
    assert run(client, accepted) == expected  # nothing to accept any more


@pytest.mark.parametrize("loss", LOSSES)
def test_an_input_that_is_accepted_after_the_loss_is_the_one_of_the_runs_after_it(redis_backend, loss):
    client = redis_backend.client()
    run(client, BEFORE, RunOptions(last_txid=1))
    before = all_keys(client, HOME)
    run(client, BEFORE)
    lose(client, HOME, LOSSES[loss](before))
    accepted, options, trouble = ACCEPTED["input"]
    expected = run(client, accepted, options)
    assert run(client, accepted) == expected
    with pytest.raises(StateRefusedError) as refused:
        run(client, BEFORE)
    assert refused.value.trouble is trouble


@pytest.mark.parametrize("loss", LOSSES)
def test_an_input_that_shards_of_an_earlier_version_do_not_know_has_to_be_accepted(redis_backend, loss):
    client = redis_backend.client()
    run(client, BEFORE, RunOptions(last_txid=1))
    before = all_keys(client, HOME)
    expected = run(client, BEFORE)
    lose(client, HOME, LOSSES[loss](before))
    for key in client.keys("{kept.*:txbatch:shard"):
        client.hdel(key, "source_fingerprint")
    with pytest.raises(StateRefusedError, match=sharded_store.UNKNOWN_SOURCE):
        run(client, BEFORE)
    assert run(client, BEFORE, RunOptions(adopt="unchecked")) == expected
