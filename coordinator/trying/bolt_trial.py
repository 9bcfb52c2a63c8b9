"""Runs one bolt alone over a few batches: the smallest test of a bolt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.testing.cluster.recorder import Emission
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.commits.dead_letters import DeadLetter
from state.errors import TopologyError
from state.html_tables import bounded_repr, bounded_table, section, states_table
from state.printable import counted


@dataclass(frozen=True, slots=True)
class BoltTrial:
    """The result of running a bolt over some batches.

    Attributes:
        batches: for each batch, (stream id, values) of every tuple that the bolt emitted.
        states: state name -> its contents after the last batch, decoded as declared.
        dead_letters: the bolt's dead letters, in order; `txid` is the number of the batch, from 1.
    """

    batches: tuple[tuple[Emission, ...], ...]
    states: Mapping[str, Any]
    dead_letters: tuple[DeadLetter, ...] = ()

    def emitted(self, stream_id: str = DEFAULT_STREAM) -> list[list[Any]]:
        """Returns the values of all tuples on one stream, in order."""
        return [values for batch in self.batches for stream, values in batch if stream == stream_id]

    def __repr__(self) -> str:
        emitted = sum(map(len, self.batches))
        batches = "1 batch" if len(self.batches) == 1 else f"{len(self.batches):,} batches"
        return (
            f"BoltTrial({batches}, {counted(emitted, 'tuple')} emitted, "
            f"states {bounded_repr(self.states)}, {counted(len(self.dead_letters), 'dead letter')})"
        )

    def _repr_html_(self) -> str:
        emitted = [
            (number, stream_id, bounded_repr(values))
            for number, batch in enumerate(self.batches, start=1)
            for stream_id, values in batch
        ]
        refused = [(letter.txid, letter.reason, bounded_repr(letter.values)) for letter in self.dead_letters]
        parts = [bounded_table(("batch", "stream", "values"), emitted, caption="emitted")]
        parts += [states_table(self.states)] if self.states else []
        parts += [bounded_table(("batch", "reason", "values"), refused, caption="dead letters")] if refused else []
        return section(*parts)


def run_bolt(
    bolt: IBatchBolt | IBasicBolt,
    *batches: Sequence[Sequence[Any]],
    fields: Sequence[str],
    conf: Mapping[str, Any] | None = None,
) -> BoltTrial:
    """Runs one bolt over batches, each a transaction, in one process and a few milliseconds; called by users' tests.

    The bolt is pickled and called as on a cluster, with one task and no bolt downstream.

        trial = run_bolt(CountWords(), [["to be or"], ["not to be"]], fields=["line"])
        assert ["to", 2] in trial.emitted()

    Args:
        bolt: a batch bolt, a committer or a basic bolt.
        batches: the rows of each transaction; transactions are committed in this order.
        fields: names of the values of a row.
        conf: the configuration that `prepare` receives.

    Raises:
        UserCodeError: the bolt raised; the message has the traceback.
        ReplayLimitError: the bolt raised `FailedException` in every attempt.
        TopologyError: the bolt could not run on a cluster either, or no batch was given.
    """
    if not batches:
        raise TopologyError("run_bolt got no batch; give at least one, [] for an empty one")
    builder = TransactionalTopologyBuilder("trial", "input", FixedBatchesSpout(batches, fields))
    builder.set_bolt("bolt", bolt).shuffle_grouping("input")
    with LocalCluster() as cluster:
        run = cluster.submit(builder.build(conf))
        run.run_until_idle()
        emitted = tuple(tuple(run.emitted("bolt", txid)) for txid in range(1, len(batches) + 1))
        return BoltTrial(emitted, run.snapshot().states, tuple(run.dead_letters()))
