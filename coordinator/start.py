"""Runs a topology in the background, with a handle to watch it, drain it and wait for it."""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack, cast, overload

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.plain.plain_coordinator import PlainCoordinator
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.run import run_as
from coordinator.run_plain import run_plain
from coordinator.run_request import OnStep, RunKeywords, RunRequest, ServerKeywords, spelled_out
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_checks import check_is_a
from coordinator.transactional.options import EngineName, RunOptions
from coordinator.watching.run_observer import Observer
from coordinator.watching.statistics.run_report import Figures, tables_of
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import TopologyError
from state.html_tables import bar, notebook_display
from state.printable import message_of

_LOG = logging.getLogger("txbatch")
EXIT_TIMEOUT_S = 30.0
"""How long a process that ends waits for its run to drain."""
SHOWN_EVERY_S = 0.5
"""The pause between two pictures of a run in a notebook."""


class Watched(Protocol):
    """The statistics of either kind of run, as `RunStatistics` and `PlainStatistics` have them."""

    @property
    def components(self) -> Mapping[str, ComponentMetrics]: ...
    def copied(self) -> Self: ...
    def figures(self) -> Figures: ...


Statistics = TypeVar("Statistics", bound=Watched)


class Driven(Protocol[Statistics]):
    """The part of a coordinator that a background run needs."""

    statistics: Statistics

    def drain(self) -> None: ...


Work = Callable[[Callable[[Driven[Statistics]], None], Callable[[Statistics], None]], Statistics]
"""Runs to the end; calls its arguments with the coordinator, and with the statistics after events."""


class RunStatus(StrEnum):
    """The state of a run in the background."""

    STARTING = "starting"
    """The server and Spark are being started; no transaction has been cut yet."""
    RUNNING = "running"
    DRAINING = "draining"
    """It commits what is in flight, or ends the wave of a plain topology, and then ends."""
    DONE = "done"
    FAILED = "failed"


class BackgroundRun(Generic[Statistics]):
    """A run on a thread of its own; made by `start`, used from any thread.

    Ctrl-C in a cell, a `wait` or a block does not affect the run, which continues until its input ends or somebody
    calls `drain`. If the run fails, its error is logged, and raised by each call of `wait` and `result`.

    As a context manager it drains the run at the end of the block, waits for it, and raises the error of the run, or of
    the block if that has failed. To let a finite input end, call `wait` in the block.

    A process that ends drains the run first, for up to 30 seconds. In any case, nothing that was committed can be lost.

    Args:
        topology_id: the id of the topology.
        work: does the run; called on the new thread.
        statistics: the statistics of a run that has not begun.

    Attributes:
        topology_id: the id of the topology.
    """

    def __init__(self, topology_id: str, work: Work[Statistics], statistics: Statistics) -> None:
        self.topology_id = topology_id
        self._work = work
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._coordinator: Driven[Statistics] | None = None
        self._is_draining = False
        self._statistics = statistics
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"txbatch-{topology_id}", daemon=True)
        atexit.register(self._end_with_process)
        self._thread.start()

    @property
    def statistics(self) -> Statistics:
        """The statistics of the run after its last event: a copy, which does not change any more."""
        return self._statistics

    @property
    def status(self) -> RunStatus:
        """The state of the run."""
        if self._ended.is_set():
            return RunStatus.DONE if self._error is None else RunStatus.FAILED
        if self._is_draining:
            return RunStatus.DRAINING
        return RunStatus.STARTING if self._coordinator is None else RunStatus.RUNNING

    def drain(self) -> None:
        """Makes the run end: it cuts no new transactions, and commits those in flight. Returns at once.

        A run of a plain topology ends after its wave, whose messages are acked or failed. A run that is still starting
        ends as soon as it has started. The next run of a transactional topology continues.
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

    def watch(self, timeout_s: float | None = None) -> bool:
        """Waits as `wait` does; in a notebook, the cell shows the run meanwhile, with a bar if the input has a size."""
        display = notebook_display()
        if display is None:
            return self.wait(timeout_s)
        shown = display(self, display_id=True)
        until = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
        try:
            while (left := until - time.monotonic()) > 0 and not self._ended.wait(min(left, SHOWN_EVERY_S)):
                shown.update(self)
        finally:
            shown.update(self)
        return self.wait(0)

    def result(self, timeout_s: float | None = None) -> Statistics:
        """Waits until the run has ended, and returns its statistics.

        Raises:
            TimeoutError: the run has not ended in time; it continues.
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
        fraction = getattr(statistics, "fraction", None)  # of a plain topology's input, the size is unknown
        figures = [("read", bar(fraction)), *statistics.figures()] if fraction is not None else statistics.figures()
        return tables_of(f"{self.topology_id}: {self.status}", figures, statistics.components)

    def _run(self) -> None:
        try:
            self._statistics = self._work(self._begun, self._progressed).copied()
        except BaseException as error:  # noqa: BLE001 - `wait` and `result` raise it
            self._error = error
            _LOG.error(
                "the run of topology %r failed, wait() and result() raise it: %s", self.topology_id, message_of(error)
            )
        finally:
            self._coordinator = None  # it refers to everything that the run has opened
            atexit.unregister(self._end_with_process)
            self._ended.set()

    def _begun(self, coordinator: Driven[Statistics]) -> None:
        # registered last, called first: before Spark's folders, registered meanwhile, are removed
        atexit.unregister(self._end_with_process)
        atexit.register(self._end_with_process)
        with self._lock:
            self._coordinator = coordinator
            is_draining = self._is_draining
        self._progressed(coordinator.statistics)
        if is_draining:
            coordinator.drain()

    def _progressed(self, statistics: Statistics) -> None:
        """Copies the statistics on the run's own thread, so that nobody reads them while they change."""
        self._statistics = statistics.copied()

    def _end_with_process(self) -> None:
        self.drain()
        if not self._ended.wait(EXIT_TIMEOUT_S):
            _LOG.warning("the run of topology %r did not drain in time; the next run continues", self.topology_id)


class PlainKeywords(TypedDict, total=False):
    """Keyword arguments of `start` for a plain topology, as `run_plain` has them."""

    spark: Any
    master: str
    conf: Mapping[str, str] | None
    options: PlainRunOptions | None
    on_start: Callable[[PlainCoordinator], None] | None
    on_step: OnStep | None
    on_progress: Callable[[PlainStatistics], None] | None
    factory_module: str | None
    observers: Sequence[Observer]


@overload
def start(topology: Topology, **asked: Unpack[RunKeywords]) -> BackgroundRun[RunStatistics]: ...


@overload
def start(topology: PlainTopology, **asked: Unpack[PlainKeywords]) -> BackgroundRun[PlainStatistics]: ...


@spelled_out(RunKeywords)
def start(topology: Topology | PlainTopology, **asked: Any) -> BackgroundRun[Any]:  # noqa: D417 - see `run`
    """Starts a run in the background and returns at once; for notebooks, and services that do more than one run.

        with start(topology) as run:
            run.wait(10)
            print(run.statistics)

    A transactional topology has one run at a time: a second run takes the topology over, and the first ends with a
    `FencedError`. So drain the run that a cell has started before you execute the cell again. A process has one
    SparkContext: to run two topologies at a time, give both the same `spark`.

    The other arguments are as for `run`; functions among them are called on the run's thread. A bolt that hangs blocks
    the local engine for ever, since that does not run on the main thread.

    A plain topology runs until it is drained or, with `stop_when_idle`, until its spouts have nothing more. Its
    arguments are those of `run_plain`, since it has no server.

    Args:
        topology: what `build` of a `TransactionalTopologyBuilder` or a `TopologyBuilder` returned.

    Returns:
        The run, whose `wait` and `result` raise whatever `run` or `run_plain` would.

    Raises:
        TopologyError: `topology` is not one, an argument is not for its kind, or two servers are named.
    """
    runs: Callable[..., RunStatistics | PlainStatistics]
    statistics: RunStatistics | PlainStatistics
    on_start, on_progress = (asked.pop(name, None) for name in ("on_start", "on_progress"))
    if isinstance(topology, PlainTopology):
        _check_options(asked.get("options"), PlainRunOptions, "plain")
        if given := [name for name in ServerKeywords.__annotations__ if asked.pop(name, None)]:
            raise TopologyError(f"{given[0]} was given, but a plain topology has no state and no server; leave it out")
        engine = asked.pop("engine", EngineName.SPARK)
        if engine != EngineName.SPARK:
            raise TopologyError(f"engine {engine!r} was given, but a plain topology runs on Spark only; leave it out")
        runs, statistics = partial(run_plain, topology, **asked), PlainStatistics()
    else:
        check_is_a(
            Topology, topology, "give the result of build() of a TransactionalTopologyBuilder or TopologyBuilder"
        )
        _check_options(asked.get("options"), RunOptions, "transactional")
        request = RunRequest.of(cast("RunKeywords", asked))
        runs, statistics = lambda **watching: run_as(topology, replace(request, **watching)), RunStatistics()

    def work(begun: Callable[[Any], None], progressed: Callable[[Any], None]) -> Any:
        return runs(on_start=_both(begun, on_start), on_progress=_both(progressed, on_progress))

    return BackgroundRun(topology.topology_id, work, statistics)


def _both(ours: Callable[[Any], None], users: Callable[[Any], None] | None) -> Callable[[Any], None]:
    def call(what: Any) -> None:
        ours(what)
        if users is not None:
            users(what)

    return call


def _check_options(options: object, wanted: type, kind: str) -> None:
    if options is not None and not isinstance(options, wanted):
        raise TopologyError(
            f"options is a {type(options).__name__}, but the topology is {kind}; give {wanted.__name__}(...)"
        )
