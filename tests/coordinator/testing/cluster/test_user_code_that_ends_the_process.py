"""What user code raises that is no `Exception`: `sys.exit` and its like are its own error, Ctrl-C is not."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import pytest

from committers.committer import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, BaseRichBolt, BaseSpout
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.spouts.transactional import SpoutCoordinator, SpoutEmitter
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import Interruption, UserCodeError
from tests.support.topologies.plain_components import Sink
from tests.support.topologies.spout_kinds import WholeSpout

CANCELLED = asyncio.CancelledError("user code was cancelled")
RAISED = [SystemExit(3), GeneratorExit("done"), CANCELLED]
NAMES = ["SystemExit: 3", "GeneratorExit: done", "CancelledError: user code was cancelled"]
each_kind = pytest.mark.parametrize(
    ("error", "name"), list(zip(RAISED, NAMES, strict=True)), ids=["exit", "gen", "other"]
)


class Raises(BaseBatchBolt):
    """Raises in one of its methods, at the second transaction."""

    output_fields = ("x",)

    def __init__(self, error, method):
        self.error, self.method = error, method

    def fall(self, method):
        if self.attempt.txid == 2 and method == self.method:
            raise self.error

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.fall("prepare")

    def execute(self, tup):
        self.fall("execute")
        self.collector.emit([tup["x"]])

    def finish_batch(self):
        self.fall("finish_batch")

    def cleanup(self):
        self.fall("cleanup")


class Store(Raises, ICommitter):
    seen = HashState("seen", value=int, field=int)

    def execute(self, tup):
        self.fall("execute")

    def finish_batch(self):
        self.seen.increment(self.attempt.txid, 1)
        super().finish_batch()


def transactional(error, method, *, in_committer=False):
    builder = TransactionalTopologyBuilder("ends", "in", FixedBatchesSpout([[[1]], [[2]], [[3]]], ["x"]))
    builder.set_bolt("work", Raises(error, "" if in_committer else method)).shuffle_grouping("in")
    store = Store(error, method if in_committer else "")
    builder.set_committer_bolt("store", store).global_grouping("work")
    return builder.build()


@each_kind
@pytest.mark.parametrize("method", ["prepare", "execute", "finish_batch", "cleanup"])
@pytest.mark.parametrize("component", ["work", "store"])
def test_a_batch_bolt_that_ends_its_process_is_a_users_error_and_lower_transactions_are_committed(
    cluster, component, method, error, name
):
    run = cluster.submit(transactional(error, method, in_committer=component == "store"))
    with pytest.raises(UserCodeError, match=name) as caught:
        run.run_until_idle()
    assert (caught.value.component_id, caught.value.attempt.partition(":")[0]) == (component, "2")
    assert run.state("seen") == {1: 1}


def test_the_users_error_says_what_to_do_instead_of_ending_the_process():
    with LocalCluster() as cluster, pytest.raises(UserCodeError, match="may not end its process; raise an exception"):
        cluster.submit(transactional(SystemExit(3), "execute")).run_until_idle()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), Interruption()], ids=["Ctrl-C", "signal"])
def test_who_interrupts_the_process_is_not_held_up_by_a_bolt(interruption):
    with LocalCluster() as cluster, pytest.raises(type(interruption)):
        cluster.submit(transactional(interruption, "execute")).run_until_idle()


LEAVES = "the spout has had enough"


class LeavingCutter(SpoutCoordinator):
    """Exits where it is told to."""

    def __init__(self, where=""):
        self.where = where

    def is_ready(self):
        return sys.exit(LEAVES) if self.where == "is_ready" else True

    def initialize_transaction(self, txid, previous):
        return sys.exit(LEAVES) if self.where == "initialize_transaction" else txid

    def is_exhausted(self):
        return False


class LeavingEmitter(SpoutEmitter):
    def __init__(self, where=""):
        self.where = where

    def emit_batch(self, attempt, metadata, collector):
        if self.where == "emit_batch":
            sys.exit(LEAVES)


@pytest.mark.parametrize("where", ["is_ready", "initialize_transaction", "emit_batch"])
def test_a_transactional_spout_that_ends_its_process_is_a_users_error(cluster, where):
    builder = TransactionalTopologyBuilder(
        "ends", "in", WholeSpout(partial(LeavingCutter, where), partial(LeavingEmitter, where))
    )
    builder.set_bolt("work", Raises(None, "")).shuffle_grouping("in")
    run = cluster.submit(builder.build())
    with pytest.raises(UserCodeError, match=f"SystemExit: {LEAVES}") as caught:
        run.run_until_idle()
    assert caught.value.component_id == "in"


class LeavingSpout(BaseSpout):
    output_fields = ("x",)

    def __init__(self, where):
        self.where, self.is_done = where, False

    def next_tuple(self):
        if self.where == "next_tuple":
            sys.exit(3)
        if not self.is_done:
            self.is_done = True
            self.collector.emit([1], 1)

    def ack(self, message_id):
        if self.where == "ack":
            sys.exit(3)


class LeavingRichBolt(BaseRichBolt):
    def execute(self, tup):
        sys.exit(3)


class LeavingBasicBolt(BaseBasicBolt):
    def execute(self, tup, collector):
        sys.exit(3)


@pytest.mark.parametrize(
    ("spout", "bolt", "culprit"),
    [
        (LeavingSpout("next_tuple"), Sink(), "in"),
        (LeavingSpout("ack"), Sink(), "in"),
        (LeavingSpout(""), LeavingRichBolt(), "work"),
        (LeavingSpout(""), LeavingBasicBolt(), "work"),
    ],
    ids=["next_tuple", "ack", "rich bolt", "basic bolt"],
)
def test_a_plain_topology_names_who_ends_its_process(spout, bolt, culprit):
    builder = TopologyBuilder("plain")
    builder.set_spout("in", spout)
    builder.set_bolt("work", bolt).shuffle_grouping("in")
    with LocalCluster() as cluster, pytest.raises(UserCodeError, match="SystemExit: 3") as caught:
        cluster.submit(builder.build()).run_until_idle()
    assert caught.value.component_id == culprit
