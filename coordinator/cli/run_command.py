"""``txbatch run``: makes the topology, runs it to its end, and prints a summary."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coordinator.building.plain_topology import PlainTopology
from coordinator.building.topology import Topology
from coordinator.cli.exits import ExitCode
from coordinator.cli.figures import Figures, RunFigures, summary_line
from coordinator.cli.loading import load_factory, make_topology
from coordinator.cli.parameters import parse_pairs
from coordinator.cli.plain_figures import PlainFigures, plain_summary_line
from coordinator.cli.progress import RunProgress, progress_on_stderr
from coordinator.cli.signals import STOP_TIMEOUT_S, DrainOnSignal
from coordinator.cli.streams.failure_line import Reached, failure_told
from coordinator.cli.streams.log_style import LoggedProgress, log_sentence
from coordinator.cli.streams.terminal import say, say_json
from coordinator.log_fields import name_topology
from coordinator.plain.coordinator import PlainCoordinator
from coordinator.plain.options import PlainRunOptions
from coordinator.plain.run_summary import PlainStatistics
from coordinator.run import run
from coordinator.run_observer import Observer
from coordinator.run_plain import run_plain
from coordinator.server_choice import ServerChoice
from coordinator.telemetry.metrics_server import MetricsServer
from coordinator.telemetry.transaction_spans import TransactionSpans
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.transactional.run_summary import RunStatistics
from state.errors import TopologyError
from state.keys import Keys
from state.kinds.handles import declared_states, key_shown
from state.printable import counted, one_line
from state.redis_client.address import secrets_in

TXIDS_SHOWN = 10
Statistics = TypeVar("Statistics")
Runner = Callable[..., RunStatistics]
PlainRunner = Callable[..., PlainStatistics]


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Where ``--metrics-port`` and ``--metrics-host`` want metrics to be served."""

    port: int
    host: str

    @classmethod
    def of(cls, port: int | None, host: str) -> MetricsAddress | None:
        """Returns the address that these options name, None without a port."""
        return None if port is None else cls(port, host)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments and options of ``txbatch run``.

    Attributes:
        target: ``MODULE:FACTORY``.
        parameters: ``key=value`` texts for the factory.
        server: holds the state.
        master: Spark master.
        conf: ``key=value`` texts for Spark.
        options: limits of a transactional run.
        as_json: end with one line of JSON on standard output, also after an error.
        replay: quarantined batches to publish instead of reading the input; see `run`.
        stop_when_idle: end a plain run once its spouts have nothing more to emit.
        stop_timeout_s: longest time from SIGTERM to the end of the process.
        is_logged: all that the run says is log records; see `LogStyle`.
        metrics: where to serve metrics, None for nowhere.
        traces: make spans of transactions.
    """

    target: str
    parameters: Sequence[str]
    server: ServerChoice
    master: str
    conf: Sequence[str]
    options: RunOptions
    as_json: bool
    stop_when_idle: bool = False
    stop_timeout_s: float = STOP_TIMEOUT_S
    replay: Sequence[int] | str | None = None
    is_logged: bool = False
    metrics: MetricsAddress | None = None
    traces: bool = False

    def progress(self, topology_id: str, figures: RunFigures[Statistics]) -> RunProgress[Statistics]:
        """Returns what shows the progress of the run."""
        if self.is_logged:
            return LoggedProgress(time.monotonic, figures)
        return progress_on_stderr(topology_id, time.monotonic, figures, leaves_line=self.as_json)


def execute(request: RunRequest, runner: Runner = run, plain_runner: PlainRunner = run_plain) -> int:
    """Runs the topology and returns the exit code.

    Raises:
        TopologyError: an option does not apply to this kind of topology.
        TransactionError: see `coordinator.run.run`.
        StoppedError: a signal stopped the run.
    """
    given, conf = parse_pairs("-p", request.parameters), parse_pairs("--conf", request.conf)
    # with --json, standard output carries one line only: what user code prints goes to standard error
    quiet = contextlib.redirect_stdout(sys.stderr) if request.as_json else contextlib.nullcontext()
    with failure_told(secrets_in(request.server.redis_url or ""), is_wanted=request.as_json) as reached, quiet:
        factory, module_name = load_factory(request.target)
        topology = make_topology(factory, request.target, given)
        name_topology(topology.topology_id)
        reached.topology_id = topology.topology_id
        statistics: RunStatistics | PlainStatistics
        if isinstance(topology, PlainTopology):
            statistics, signal_number = _run_plain(topology, request, plain_runner, conf, module_name, reached=reached)
            told = plain_summary(topology, statistics)
        else:
            statistics, signal_number = _run(topology, request, runner, conf, module_name, reached=reached)
            told = summary(topology, statistics, request.server)
    _tell_result(request, topology.topology_id, statistics, told)
    if statistics.is_interrupted and signal_number is not None:
        return 128 + signal_number
    return ExitCode.DONE


def _tell_result(request: RunRequest, topology_id: str, statistics: RunStatistics | PlainStatistics, told: str) -> None:
    figures = statistics.to_dict(topology_id)
    if request.as_json:
        say_json(figures)
    elif request.is_logged:
        log_sentence(told, figures=figures)
    else:
        say(*told.split("\n"))
    if isinstance(statistics, RunStatistics) and statistics.quarantined:
        line = quarantine_line(topology_id, statistics.quarantined)
        if request.is_logged:
            log_sentence(line.removeprefix("txbatch: "), logging.WARNING)
        else:
            say(line, to=sys.stderr)


@contextlib.contextmanager
def _observers(request: RunRequest, topology_id: str, note: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Serves the run's metrics, and traces it, if that was asked for; yields the runner's arguments for that."""
    observers: list[Observer] = [TransactionSpans()] if request.traces else []
    with contextlib.ExitStack() as serving:
        if request.metrics is not None:
            address = request.metrics
            server = serving.enter_context(MetricsServer(topology_id, port=address.port, host=address.host))
            note(f"metrics on {server.url}")
            observers.append(server)
        yield {"observers": observers} if observers else {}


def _run(
    topology: Topology,
    request: RunRequest,
    runner: Runner,
    conf: Mapping[str, str],
    module_name: str,
    *,
    reached: Reached,
) -> tuple[RunStatistics, int | None]:
    if request.stop_when_idle:
        raise TopologyError(
            f"--stop-when-idle is for plain topologies, but {topology.topology_id!r} is transactional; leave the "
            "option out: the run ends with its input"
        )
    figures = Figures(time.monotonic)
    with (
        request.progress(topology.topology_id, figures) as progress,
        DrainOnSignal(progress.say, stop_timeout_s=request.stop_timeout_s) as signals,
        _observers(request, topology.topology_id, progress.note) as observing,
    ):

        def begun(coordinator: Coordinator) -> None:
            reached.statistics = coordinator.statistics
            signals.drain_by(coordinator.drain)
            progress.begun()
            if coordinator.statistics.durability is not None and not request.is_logged:  # the run logs it too
                progress.note(coordinator.statistics.durability.first_line())

        statistics = runner(
            topology,
            redis_url=request.server.redis_url,
            data_dir=request.server.data_dir if request.server.redis_url is None else None,
            allow_plaintext=request.server.allow_plaintext,
            master=request.master,
            conf=conf,
            options=request.options,
            on_start=begun,
            on_step=progress.starting,
            on_progress=progress.update,
            factory_module=module_name,
            **observing,
            **({} if request.replay is None else {"replay": request.replay}),
        )
        progress.update(statistics)  # a run with nothing to do has no event that would have reported it
        return statistics, signals.received


def _run_plain(
    topology: PlainTopology,
    request: RunRequest,
    runner: PlainRunner,
    conf: Mapping[str, str],
    module_name: str,
    *,
    reached: Reached,
) -> tuple[PlainStatistics, int | None]:
    if request.options != RunOptions():
        raise TopologyError(
            "--max-pending, --wave-target-ms, --slots, --commit-group-max, --max-attempts, --on-poison, "
            "--max-quarantined, --adopt, --accept-state-changes, --durability, --history and --no-pulse are for "
            f"transactional topologies, but {topology.topology_id!r} is a plain one; leave them out, and limit what is "
            "in flight with the builder's set_max_spout_pending"
        )
    if request.traces:
        raise TopologyError(
            f"--traces is for transactional topologies, but {topology.topology_id!r} is a plain one and has no "
            "transactions; leave it out"
        )
    figures = PlainFigures(time.monotonic)
    with (
        request.progress(topology.topology_id, figures) as progress,
        DrainOnSignal(progress.say, stop_timeout_s=request.stop_timeout_s) as signals,
        _observers(request, topology.topology_id, progress.note) as observing,
    ):

        def begun(coordinator: PlainCoordinator) -> None:
            reached.statistics = coordinator.statistics
            signals.drain_by(coordinator.drain)
            progress.begun()

        statistics = runner(
            topology,
            master=request.master,
            conf=conf,
            options=PlainRunOptions(stop_when_idle=request.stop_when_idle),
            on_start=begun,
            on_step=progress.starting,
            on_progress=progress.update,
            factory_module=module_name,
            **observing,
        )
        progress.update(statistics)  # a run whose spouts emitted nothing has no wave that would have reported it
        return statistics, signals.received


def quarantine_line(topology_id: str, txids: Sequence[int]) -> str:
    """Returns the last line of a run that has quarantined batches."""
    shown = ", ".join(f"{txid:,}" for txid in txids[:TXIDS_SHOWN])
    shown += f" and {len(txids) - TXIDS_SHOWN:,} more" if len(txids) > TXIDS_SHOWN else ""
    batches = "batch" if len(txids) == 1 else "batches"
    return (
        f"txbatch: QUARANTINED, and therefore not in the state: the {batches} of txid {shown}; see "
        f"`txbatch quarantine list {topology_id}`"
    )


def plain_summary(topology: PlainTopology, statistics: PlainStatistics) -> str:
    """Returns what is printed at the end of a plain run without ``--json``."""
    ended = "stopped before its spouts were idle" if statistics.is_interrupted else "done"
    lines = [f"{topology.topology_id}: {ended}", f"  {plain_summary_line(statistics)}"]
    if statistics.seconds > 0:
        lines.append(f"  {statistics.emitted / statistics.seconds:,.0f} tuples/s")
    return "\n".join(lines)


def summary(topology: Topology, statistics: RunStatistics, server: ServerChoice) -> str:
    """Returns what is printed at the end of a transactional run without ``--json``."""
    seconds = statistics.seconds
    ended = "stopped before the end of its input; run again to continue" if statistics.is_interrupted else "done"
    lines = [f"{topology.topology_id}: {ended}", f"  {summary_line(statistics)}"]
    if seconds > 0:
        lines.append(
            f"  {statistics.committed / seconds:,.1f} transactions/s, {statistics.tuples / seconds:,.0f} tuples/s, "
            f"{counted(statistics.waves, 'wave')}, {counted(statistics.commit_groups, 'commit')}"
        )
    if statistics.server_away_count:
        times = "once" if statistics.server_away_count == 1 else f"{statistics.server_away_count:,} times"
        lines.append(
            f"  the server was unreachable {times}, for {statistics.server_away_s:.1f} s in all; nothing was lost"
        )
    lines += [f"  quarantined txid {old:,} was replayed as txid {new:,}" for old, new in statistics.replayed.items()]
    if statistics.replayed_letters:
        lines.append(f"  {counted(statistics.replayed_letters, 'dead letter')} published")
    if statistics.dead_letters:
        letters = counted(statistics.dead_letters, "dead letter")
        lines.append(f"  {letters} in this run; `txbatch dead-letters list {topology.topology_id}` lists all there are")
    if statistics.durability is not None and (durable := statistics.durability.last_line(statistics.released_txid)):
        lines.append(f"  {durable}")
    lines += [f"  counter {one_line(name)}: {count:,}" for name, count in sorted(statistics.counters.items())]
    keys = Keys(topology.topology_id)
    for component in topology.components:
        for handle in declared_states(type(component.spec)).values():
            lines.append(f"  {handle.kind.value} {key_shown(handle, keys)} in {server}")
    return "\n".join(lines)
