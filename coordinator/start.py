"""Runs a transactional topology in the background: a handle to watch it, drain it and wait for it."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coordinator.building.topology import Topology
from coordinator.building.topology_checks import check_is_a
from coordinator.reports.run_tables import tables_of
from coordinator.run import OnStart, run_as
from coordinator.run_request import RunRequest
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.transactional.run_summary import RunStatistics
from state.printable import said_by

_LOG = logging.getLogger("txbatch")
EXIT_TIMEOUT_S = 30.0
"""How long the end of the process waits for a run to drain."""
Work = Callable[[OnStart, Callable[[RunStatistics], None]], RunStatistics]
"""Runs to the end; is given what to call with the coordinator, and with the statistics after every event."""


class RunStatus(StrEnum):
    """How a run in the background stands."""

    STARTING = "starting"
    """The server and Spark are being started; nothing was cut yet."""
    RUNNING = "running"
    DRAINING = "draining"
    """It commits what is in flight, and then ends."""
    DONE = "done"
    FAILED = "failed"


class BackgroundRun:
    """A run under way on a thread of its own; made by `start`, used from any thread.

    Leaving a cell, a `wait` or a block by Ctrl-C leaves the run as it is: it continues until its input ends or somebody
    calls `drain`. Its error is raised by `wait` and `result`, each time they are called, and is logged when it happens.

    As a context manager it drains the run at the end of the block, waits for it, and raises what the run raised; after
    an exception in the block, that one. To let a finite input end, call `wait` in the block.

    A process that ends drains the run first, for up to 30 seconds. Nothing that was committed can be lost either way.

    Args:
        topology_id: of the topology.
        work: does the run; called on the new thread.

    Attributes:
        topology_id: of the topology.
    """

    def __init__(self, topology_id: str, work: Work) -> None:
        self.topology_id = topology_id
        self._work = work
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._coordinator: Coordinator | None = None
        self._is_draining = False
        self._statistics = RunStatistics()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"txbatch-{topology_id}", daemon=True)
        atexit.register(self._end_with_process)
        self._thread.start()

    @property
    def statistics(self) -> RunStatistics:
        """The figures of the run as of its last event: a copy, which stays as it is."""
        return self._statistics

    @property
    def status(self) -> RunStatus:
        """How the run stands."""
        if self._ended.is_set():
            return RunStatus.DONE if self._error is None else RunStatus.FAILED
        if self._is_draining:
            return RunStatus.DRAINING
        return RunStatus.STARTING if self._coordinator is None else RunStatus.RUNNING

    def drain(self) -> None:
        """Lets the run end: it cuts no new transactions, and commits those in flight. Returns at once.

        A run that is still starting ends as soon as it has started. The next run of the topology continues.
        """
        with self._lock:
            self._is_draining = True
            coordinator = self._coordinator
        if coordinator is not None:
            coordinator.drain()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the run has ended, and returns whether it has.

        Args:
            timeout_s: longest time to wait, in seconds; None waits as long as it takes.

        Raises:
            TransactionError: what the run raised; see `run`.
        """
        if not self._ended.wait(timeout_s):
            return False
        if self._error is not None:
            raise self._error
        return True

    def result(self, timeout_s: float | None = None) -> RunStatistics:
        """Waits until the run has ended, and returns its statistics.

        Raises:
            TimeoutError: it has not ended in time; it continues.
            TransactionError: what the run raised; see `run`.
        """
        if not self.wait(timeout_s):
            raise TimeoutError(
                f"the run of topology {self.topology_id!r} has not ended within {timeout_s:g} s; it continues: wait "
                "again, or drain it"
            )
        return self._statistics

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.drain()
        if error is None:
            self.wait()
        else:
            self._ended.wait()

    def __repr__(self) -> str:
        return f"BackgroundRun({self.topology_id!r}, {self.status}, {self.statistics!r})"

    def _repr_html_(self) -> str:
        statistics = self.statistics
        return tables_of(f"{self.topology_id}: {self.status}", statistics.figures(), statistics.components)

    def _run(self) -> None:
        try:
            self._statistics = self._work(self._begun, self._progressed).copied()
        except BaseException as error:  # noqa: BLE001 - `wait` and `result` raise it
            self._error = error
            _LOG.error(
                "the run of topology %r failed, wait() and result() raise it: %s", self.topology_id, said_by(error)
            )
        finally:
            self._coordinator = None  # it holds everything that the run has opened
            atexit.unregister(self._end_with_process)
            self._ended.set()

    def _begun(self, coordinator: Coordinator) -> None:
        # what is registered last is called first: before Spark's folders, registered since, are removed
        atexit.unregister(self._end_with_process)
        atexit.register(self._end_with_process)
        with self._lock:
            self._coordinator = coordinator
            is_draining = self._is_draining
        self._progressed(coordinator.statistics)
        if is_draining:
            coordinator.drain()

    def _progressed(self, statistics: RunStatistics) -> None:
        """Copies the figures on the run's own thread, so that nobody reads what is being changed."""
        self._statistics = statistics.copied()

    def _end_with_process(self) -> None:
        self.drain()
        if not self._ended.wait(EXIT_TIMEOUT_S):
            _LOG.warning("the run of topology %r did not drain in time; the next run continues", self.topology_id)


def start(
    topology: Topology,
    *,
    redis_url: str | None = None,
    data_dir: str | Path | None = None,
    allow_plaintext: bool = False,
    spark: Any = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    options: RunOptions | None = None,
    on_progress: Callable[[RunStatistics], None] | None = None,
    factory_module: str | None = None,
) -> BackgroundRun:
    """Begins a run in the background and returns at once; for notebooks, and services with more to do than one run.

        with start(topology) as run:
            run.wait(10)
            print(run.statistics)

    One topology has one run: a second one takes it over, and the first ends with a `FencedError`. So drain the run that
    a cell has started before you start it again. A process has one SparkContext: to have two topologies run at a time,
    give both the same `spark`.

    Args:
        topology: what `TransactionalTopologyBuilder.build` returned.
        redis_url: as for `run`.
        data_dir: as for `run`.
        allow_plaintext: as for `run`.
        spark: a SparkSession or SparkContext of yours, which is left running; None starts one, which ends with the run.
        master: as for `run`.
        conf: as for `run`.
        options: limits of the run.
        on_progress: called with the statistics after every event, on the run's thread.
        factory_module: as for `run`.

    Returns:
        The run, whose `wait` and `result` raise whatever `run` would.

    Raises:
        TopologyError: this is no transactional topology.
    """
    check_is_a(Topology, topology, "run_plain runs a plain topology")

    request = RunRequest(
        redis_url=redis_url,
        data_dir=data_dir,
        allow_plaintext=allow_plaintext,
        spark=spark,
        master=master,
        conf=conf,
        options=options,
        factory_module=factory_module,
    )

    def work(begun: OnStart, progressed: Callable[[RunStatistics], None]) -> RunStatistics:
        def told(statistics: RunStatistics) -> None:
            progressed(statistics)
            if on_progress is not None:
                on_progress(statistics)

        return run_as(topology, replace(request, on_progress=told), begun)

    return BackgroundRun(topology.topology_id, work)
