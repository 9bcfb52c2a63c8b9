"""A bolt whose methods nothing would call is refused when the topology is built, not run over the whole input."""

from __future__ import annotations

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt, IBatchBolt
from coordinated_bolt.components.callbacks import FinishedCallback
from coordinator.engines.local.bolt_trial import run_bolt
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.errors import TopologyError
from state.kinds.handles import HashState
from tests.support.topologies.components import Lines, Pass


def build(bolt, *, committer=False):
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    (builder.set_committer_bolt if committer else builder.set_bolt)("bolt", bolt).shuffle_grouping("lines")
    return builder.build()


def refused(bolt, message, **options):
    with pytest.raises(TopologyError, match=message):
        build(bolt, **options)


class Counts(BaseBatchBolt, ICommitter):
    counts = HashState("counts", value=int)


class Misspelled(Counts):
    def excute(self, tup):
        """Is never called."""

    def finish_batch(self):
        """Writes."""


NEITHER = r"component 'bolt' would ignore every tuple: Misspelled overrides neither execute nor execute_batch; "


def test_a_misspelled_execute_is_refused_by_its_name():
    refused(Misspelled(), NEITHER + r"it defines excute: did you mean execute\?")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Execute", "execute"),
        ("_execute", "execute"),
        ("executeBatch", "execute_batch"),
        ("exec_batch", "execute_batch"),
    ],
)
def test_near_misses_name_the_method_that_was_meant(name, meant):
    misspelled = type("Misspelled", (BaseBatchBolt,), {name: lambda self, tup: None})
    refused(misspelled(), NEITHER + rf"it defines {name}: did you mean {meant}\?")


def test_a_bolt_without_any_method_is_shown_both_ways_out():
    class Sink(BaseBatchBolt):
        """Has nothing."""

    refused(
        Sink(),
        r"Sink overrides neither execute nor execute_batch; define one of them, if only an execute that does nothing$",
    )
    refused(Sink(), "would ignore every tuple", committer=True)


def test_a_mixin_after_the_base_is_refused_because_the_base_comes_first():
    class Mixin:
        def execute(self, tup):
            """Is hidden by BaseBatchBolt's."""

    class Hidden(BaseBatchBolt, Mixin):
        """Inherits in the wrong order."""

    class Seen(Mixin, BaseBatchBolt):
        """Inherits in the right order."""

    refused(
        Hidden(), r"Hidden overrides neither .*; Mixin defines execute: name it before BaseBatchBolt among the bases"
    )
    build(Seen())


def test_what_a_factory_or_an_instance_defines_counts():
    made = type("Made", (BaseBatchBolt,), {"execute": lambda self, tup: None})
    build(made())
    plain = type("Plain", (BaseBatchBolt,), {})()
    plain.execute = print
    build(plain)
    unseen = type("Misspelled", (BaseBatchBolt,), {})()
    unseen.execute_batch = print  # which bolts take batches is asked of their class
    refused(unseen, NEITHER)


def test_a_bolt_may_take_batches_only_or_ignore_its_tuples_on_purpose():
    class Batches(BaseBatchBolt):
        def execute_batch(self, batch):
            """Takes columns."""

    class Ignoring(Counts):
        def execute(self, tup):
            """Only the transaction counts."""

        def finish_batch(self):
            """Writes."""

    build(Batches())
    build(Ignoring())


NO_FINISH = (
    r"component 'bolt' would write nothing: Adds declares state \['counts'\] and does not override finish_batch; "
)


def test_a_committer_with_state_and_a_misspelled_finish_batch_is_refused_by_its_name():
    class Adds(Counts):
        def execute(self, tup):
            """Collects."""

        def finishBatch(self):  # noqa: N802 - the name that Storm gives it
            """Is never called."""

    refused(Adds(), NO_FINISH + r"it defines finishBatch: did you mean finish_batch\?")


def test_a_committer_with_a_family_of_states_and_no_finish_batch_is_refused():
    class Adds(BaseBatchBolt):
        counts = HashState("counts", value=int).per("day")

        def execute(self, tup):
            """Collects."""

    refused(Adds(), NO_FINISH + "define it: only there is state open", committer=True)


def test_a_committer_may_write_its_state_when_it_learns_that_the_batch_is_complete():
    class Told(Counts, FinishedCallback):
        def execute(self, tup):
            """Collects."""

        def finished_id(self, attempt):
            """Writes."""

    build(Told())


def test_a_bolt_that_would_emit_in_a_misspelled_finish_batch_is_refused_too():
    class Totals(BaseBatchBolt):
        output_fields = ("total",)

        def execute(self, tup):
            """Collects."""

        def finish_bach(self):
            """Is never called."""

    refused(Totals(), r"component 'bolt': Totals defines finish_bach but not finish_batch; if that is what you meant")


def test_other_methods_of_a_bolts_own_are_nobodys_business():
    class Helped(Pass):
        def finish(self):
            """Called by execute."""

        def executed(self):
            """Called by execute."""

        def _finish_batch(self):
            """Called by execute."""

        def init_batch(self):
            """Called by execute."""

        def is_finished_batch(self):
            """Called by execute."""

    class Finishing(Helped):
        def finish_batch(self):
            """Finishes."""

        def finish_batches(self):
            """Called by finish_batch."""

    build(Helped())
    build(Finishing())


def test_bolts_of_sub_topologies_are_held_to_the_same():
    class Sum(BaseBatchBolt):
        def excute(self, tup):
            """Is never called."""

    builder = TopologyBuilder("test")
    builder.set_spout("spout", FeederSpout(["value"]))
    batches = BatchSubtopologyBuilder("master", Pass())
    batches.master_declarer.shuffle_grouping("spout")
    batches.set_bolt("sum", Sum()).shuffle_grouping("master")
    batches.extend_topology(builder)
    with pytest.raises(TopologyError, match=r"component 'sum' would ignore every tuple: .* did you mean execute"):
        builder.build()


def test_a_trial_of_one_bolt_refuses_it_as_well():
    with pytest.raises(TopologyError, match="did you mean execute"):
        run_bolt(Misspelled(), [["a"]], fields=["line"])


def test_an_interface_without_defaults_needs_no_check_of_ours():
    class Bare(IBatchBolt):
        def prepare(self, conf, context, collector, attempt): ...

        def execute(self, tup): ...

        def finish_batch(self): ...

    build(Bare())
