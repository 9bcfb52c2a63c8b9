"""The bridge from Structured Streaming: the function for `writeStream.foreachBatch` that commits exactly once."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Unpack

from coordinator.run import started
from coordinator.run_request import QueryKeywords, RunRequest, spelled_out
from coordinator.sources.micro_batches import MicroBatch, MicroBatchCoordinator, MicroBatches
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_checks import check_is_a
from coordinator.transactional.coordinator import Coordinator
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import TopologyError
from state.values.whole import is_whole

_LOG = logging.getLogger("txbatch")


class ExactlyOnce:
    """Commits each micro-batch of one streaming query as one transaction; made by `exactly_once`.

    Spark calls it on the driver, once for each batch, and again for a batch whose end Spark did not record. It returns
    when the batch is durable, and raises an error if it is not: then the query stops, and repeats the batch when it is
    started again. Server, plan and ownership are kept from one batch to the next.
    """

    def __init__(self, topology: Topology, first_batch_id: int, request: RunRequest) -> None:
        self._topology = topology
        self._first_batch_id = first_batch_id
        self._request = request
        self._run: _BoundRun | None = None
        self._lock = threading.Lock()

    @property
    def statistics(self) -> RunStatistics | None:
        """The statistics since the query was started; None before its first batch."""
        return None if self._run is None else self._run.coordinator.statistics

    def __call__(self, rows: Any, batch_id: int) -> None:
        """Commits a batch, unless that was done before (driver, on Spark's thread).

        Args:
            rows: the DataFrame of the batch.
            batch_id: the number of the batch.

        Raises:
            SourceError: the batch is not the one that is due, nor the last one again.
            StateRefusedError: the topology is bound to another query.
            TransactionError: as `run`.
        """
        from coordinator.engines.spark.intake.streaming_query import (
            micro_batch_of,  # takes as long to import as everything else
        )

        batch = micro_batch_of(rows, batch_id)
        with self._lock:
            try:
                self._commit(batch, rows)
            except BaseException:
                self._close()
                raise

    def close(self) -> None:
        """Releases server and topology; called after the query has ended, if the process continues."""
        with self._lock:
            self._close()

    def _commit(self, batch: MicroBatch, rows: Any) -> None:
        context = rows.sparkSession.sparkContext
        if self._run is None or (self._run.context, self._run.source.query_id) != (context, batch.query_id):
            self._close()
            self._run = self._opened(batch.query_id, rows)
        self._run.commit(batch, rows)

    def _opened(self, query_id: str, rows: Any) -> _BoundRun:
        from coordinator.engines.spark.intake.row_intake import RowIntake

        source = MicroBatchCoordinator(query_id, self._topology.topology_id, self._first_batch_id)
        spout = self._topology.spout
        assert isinstance(spout.spec, MicroBatches)
        bound = replace(spout, spec=spout.spec.bound(source))
        topology = replace(self._topology, components=(bound, *self._topology.components[1:]))
        session = rows.sparkSession
        run = _BoundRun(session.sparkContext, source)
        with ExitStack() as resources:
            intake = RowIntake(spout.spec.columns, lambda _: run.rows)
            run.coordinator = resources.enter_context(
                started(topology, replace(self._request, spark=session, intake=intake))
            )
            run.resources = resources.pop_all()
        return run

    def _close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.resources.close()


class _BoundRun:
    """A run that takes its batches from a streaming query, one at a time.

    Args:
        context: the Spark context of the query.
        source: the coordinator of the spout.

    Attributes:
        rows: the DataFrame of the batch that is being committed.
        coordinator, resources: set once the run has started.
    """

    coordinator: Coordinator
    resources: ExitStack

    def __init__(self, context: Any, source: MicroBatchCoordinator) -> None:
        self.context, self.source = context, source
        self.rows: Any = None

    def commit(self, batch: MicroBatch, rows: Any) -> None:
        """Drives the run until the batch is as durable as was asked for; a committed batch is not processed again."""
        statistics = self.coordinator.statistics
        txid = self.source.txid_of(batch, statistics.last_txid)
        is_committed = txid <= statistics.last_txid
        self.rows = rows
        try:
            while statistics.released_txid < txid:  # bounded by its attempts, and by the timeout of a barrier
                self.coordinator.turn(is_awaited=True)
        finally:
            self.rows = None
        if is_committed:
            self.coordinator.confirm()
            _LOG.info("%s is transaction %d, which is committed: skipped", batch, txid)


@spelled_out(QueryKeywords)
def exactly_once(topology: Topology, *, first_batch_id: int = 0, **asked: Unpack[QueryKeywords]) -> ExactlyOnce:
    """Makes a function for `writeStream.foreachBatch`, with which each micro-batch changes state exactly once (driver).

    Batch n of the query is transaction n + 1 (n - `first_batch_id` + 1), which the topology processes on the query's
    own Spark session; its rows stay on the executors. The first batch binds the topology to the query: it stores the
    query's id, which is kept in the query's checkpoint. The other arguments are as for `run`. The option
    ``adopt="skip,again"`` binds the topology to another query, whatever that skips or repeats.

    Args:
        topology: what `TransactionalTopologyBuilder.build` returned; its spout is a `MicroBatches`.
        first_batch_id: the first batch that this topology is given, if the query has run without it before.

    Raises:
        TopologyError: the topology does not read micro-batches, or a parameter cannot be used.
    """
    check_is_a(Topology, topology, "use run_plain for a plain topology")
    spout = topology.spout
    if not isinstance(spout.spec, MicroBatches):
        raise TopologyError(
            f"component {spout.component_id!r} of topology {topology.topology_id!r} is a {type(spout.spec).__name__}; "
            "exactly_once takes its transactions from a streaming query: give MicroBatches(columns) as the spout"
        )
    if not is_whole(first_batch_id, 0):
        raise TopologyError(f"first_batch_id is {first_batch_id!r}; give the number of a batch, from 0")
    return ExactlyOnce(topology, first_batch_id, RunRequest.of(asked))
