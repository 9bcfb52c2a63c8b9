"""A bolt whose methods nothing would call is refused when the topology is built, not run over the whole input."""

from __future__ import annotations

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt, FinishedCallback, IBatchBolt
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.trying.bolt_trial import run_bolt
from state import HashState
from state.errors import TopologyError
from tests.support.topologies.components import Lines, Pass


def build(made):
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    builder.set_bolt("bolt", made).shuffle_grouping("lines")
    return builder.build()


def refused(made, message):
    with pytest.raises(TopologyError, match=message):
        build(made)


class Counts(BaseBatchBolt, ICommitter):
    counts = HashState("counts", value=int)


class Family(BaseBatchBolt, ICommitter):
    counts = HashState("counts", value=int).per("day")


class Mixin:
    def execute(self, tup):
        """Is hidden where BaseBatchBolt is named first."""


def bolt(name, *methods, bases=(BaseBatchBolt,), fields=()):
    """A bolt of a class that defines these methods, which do nothing."""
    return type(name, bases, {**{method: lambda self, *_: None for method in methods}, "output_fields": fields})()


def misspelled():
    return bolt("Misspelled", "excute", "finish_batch", bases=(Counts,))


NEITHER = r"component 'bolt' would ignore every tuple: {} overrides neither execute nor execute_batch; "
NO_FINISH = (
    r"component 'bolt' would write nothing: Adds declares state \['counts'\] and does not override finish_batch; "
)
BOTH_WAYS = NEITHER.format("Sink") + "define one of them, if only an execute that does nothing$"
REFUSED = {
    "misspelled": (misspelled(), NEITHER.format("Misspelled") + r"it defines excute: did you mean execute\?"),
    **{
        name: (bolt("Near", name), NEITHER.format("Near") + rf"it defines {name}: did you mean {meant}\?")
        for name, meant in {
            "Execute": "execute",
            "_execute": "execute",
            "executeBatch": "execute_batch",
            "exec_batch": "execute_batch",
        }.items()
    },
    "nothing": (bolt("Sink"), BOTH_WAYS),
    "committer of nothing": (bolt("Sink", bases=(BaseBatchBolt, ICommitter)), BOTH_WAYS),
    "mixin after the base": (
        bolt("Hidden", bases=(BaseBatchBolt, Mixin)),
        NEITHER.format("Hidden") + "Mixin defines execute: name it before BaseBatchBolt among the bases",
    ),
    "misspelled finish": (
        bolt("Adds", "execute", "finishBatch", bases=(Counts,)),  # the name that Storm gives it
        NO_FINISH + r"it defines finishBatch: did you mean finish_batch\?",
    ),
    "no finish": (bolt("Adds", "execute", bases=(Family,)), NO_FINISH + "define it: only there is state open"),
    "misspelled finish of a bolt": (
        bolt("Totals", "execute", "finish_bach", fields=("total",)),
        "component 'bolt': Totals defines finish_bach but not finish_batch; if that is what you meant",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bolt_whose_work_would_never_be_called_is_refused_with_what_was_meant(name):
    made, message = REFUSED[name]
    refused(made, message)


def test_bolts_that_do_something_or_nothing_on_purpose_are_taken():
    others = ("execute", "finish", "executed", "_finish_batch", "init_batch", "is_finished_batch")
    for made in (
        bolt("Seen", bases=(Mixin, BaseBatchBolt)),
        bolt("Batches", "execute_batch"),
        bolt("Ignoring", "execute", "finish_batch", bases=(Counts,)),
        bolt("Told", "execute", "finished_id", bases=(Counts, FinishedCallback)),
        bolt("Helped", *others),
        bolt("Finishing", *others, "finish_batch", "finish_batches"),
    ):
        build(made)


def test_what_an_instance_defines_counts():
    plain = bolt("Plain")
    plain.execute = print
    build(plain)
    unseen = bolt("Misspelled")
    unseen.execute_batch = print  # which bolts take batches is asked of their class
    refused(unseen, NEITHER.format("Misspelled"))


def test_bolts_of_sub_topologies_are_held_to_the_same():
    builder = TopologyBuilder("test")
    builder.set_spout("spout", FeederSpout(["value"]))
    batches = BatchSubtopologyBuilder("master", Pass())
    batches.master_declarer.shuffle_grouping("spout")
    batches.set_bolt("sum", bolt("Sum", "excute")).shuffle_grouping("master")
    batches.extend_topology(builder)
    with pytest.raises(TopologyError, match=r"component 'sum' would ignore every tuple: .* did you mean execute"):
        builder.build()


def test_a_trial_of_one_bolt_refuses_it_as_well():
    with pytest.raises(TopologyError, match="did you mean execute"):
        run_bolt(misspelled(), [["a"]], fields=["line"])


def test_an_interface_without_defaults_needs_no_check_of_ours():
    class Bare(IBatchBolt):
        def prepare(self, conf, context, collector, attempt): ...

        def execute(self, tup): ...

        def finish_batch(self): ...

    build(Bare())
