"""Runs a topology to its end, as a command: with progress, signals, observers and a last line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.figures import PlainFigures, ShownFigures, TransactionalFigures
from coordinator.operating.cli.loading import load_factory, make_topology
from coordinator.operating.cli.logs import log_sentence
from coordinator.operating.cli.progress import RunProgress, SentenceProgress, progress_on_stderr
from coordinator.operating.cli.run_options import DEFAULTS, EndOptions, ObserverOptions, options_given
from coordinator.operating.cli.run_result import Reached, failure_printed, print_result
from coordinator.operating.cli.signals import DrainOnSignal
from coordinator.operating.cli.terminal import user_output_aside
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.run import run_as
from coordinator.run_plain import run_plain
from coordinator.run_request import RunRequest
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import EngineName
from coordinator.watching.log_records import name_topology
from coordinator.watching.run_observer import Observer
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.metrics_server import MetricsServer
from coordinator.watching.telemetry.transaction_spans import TransactionSpans
from state.errors import TopologyError
from state.redis_client.address import secrets_in

Statistics = TypeVar("Statistics", RunStatistics, PlainStatistics)
Runner = Callable[[Topology, RunRequest], RunStatistics]
PlainRunner = Callable[..., PlainStatistics]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedRun:
    """A run as it was typed.

    A plain run uses only the Spark options of its request. With `as_json` a run ends with one line of JSON on standard
    output, even after an error; with `is_logged`, everything it prints is a log record, see `LogOptions`.
    """

    target: str
    parameters: Mapping[str, str]
    request: RunRequest
    as_json: bool
    is_logged: bool = False
    ending: EndOptions = field(default_factory=EndOptions)
    observed: ObserverOptions = field(default_factory=ObserverOptions)

    def progress(self, topology_id: str, figures: ShownFigures[Statistics]) -> RunProgress[Statistics]:
        if self.is_logged:
            return SentenceProgress(log_sentence, time.monotonic, figures, is_log=True)
        return progress_on_stderr(topology_id, time.monotonic, figures, leaves_line=self.as_json)


def execute(typed: TypedRun, runner: Runner = run_as, plain_runner: PlainRunner = run_plain) -> int:
    server = typed.request.server
    # with --json, standard output carries one line only
    quiet = user_output_aside() if typed.as_json else nullcontext()
    with failure_printed(secrets_in(server.redis_url or ""), is_wanted=typed.as_json) as reached, quiet:
        factory, module_name = load_factory(typed.target)
        topology = make_topology(factory, typed.target, typed.parameters)
        name_topology(topology.topology_id)
        reached.topology_id = topology.topology_id
        figures: Any
        go: Callable[..., Any]
        if isinstance(topology, PlainTopology):
            figures, go = PlainFigures(time.monotonic), _plain(typed, topology, module_name, plain_runner)
        else:
            figures, go = TransactionalFigures(time.monotonic), _transactional(typed, topology, module_name, runner)
        statistics, signal_number = _watched(typed, reached, figures, go)
    print_result(topology, statistics, server, as_json=typed.as_json, is_logged=typed.is_logged)
    if statistics.is_interrupted and signal_number is not None:
        return 128 + signal_number
    return ExitCode.DONE


def run_alone(topology: Topology, request: RunRequest) -> RunStatistics:
    """Runs a stored topology unless it is running already: republishing must not take over another run.

    Raises:
        TopologyError: the topology is running, or was never started.
        TransactionError: see `coordinator.run.run`.
    """
    topology_id, server = topology.topology_id, request.server
    with server.store(topology_id) as store:
        if not store.has_records():
            raise server.unknown_topology(topology_id)
        is_running = store.connected_runs() > 0
    if is_running:
        raise TopologyError(
            f"topology {topology_id!r} is running, and republishing would take it over; stop that run, republish, and "
            "start it again"
        )
    return run_as(topology, request)


def _transactional(
    typed: TypedRun, topology: Topology, module_name: str, runner: Runner
) -> Callable[..., RunStatistics]:
    """Returns a function that runs a transactional topology; refuses options of plain topologies."""
    if typed.ending.stop_when_idle:
        raise TopologyError(
            f"--stop-when-idle is for plain topologies, but {topology.topology_id!r} is transactional; leave the "
            "option out: the run ends with its input"
        )
    request = replace(typed.request, factory_module=module_name)
    return lambda **watching: runner(topology, replace(request, **watching))


def _plain(
    typed: TypedRun, topology: PlainTopology, module_name: str, runner: PlainRunner
) -> Callable[..., PlainStatistics]:
    """Returns a function that runs a plain topology; refuses options of transactional topologies."""
    if typed.request.engine != EngineName.SPARK:
        raise TopologyError(
            f"--engine {typed.request.engine} is for transactional topologies, but {topology.topology_id!r} is a plain "
            "one, which runs on Spark only; leave the option out"
        )
    executors_timeout_s = typed.request.options.executors_timeout_s
    if given := options_given(replace(typed.request.options, executors_timeout_s=DEFAULTS.executors_timeout_s)):
        is_one = len(given) == 1
        raise TopologyError(
            f"{' and '.join(given)} {'is' if is_one else 'are'} for transactional topologies, but "
            f"{topology.topology_id!r} is a plain one; leave {'it' if is_one else 'them'} out; what is in flight is "
            "limited by the builder's set_max_spout_pending"
        )
    if typed.observed.traces:
        raise TopologyError(
            f"--traces is for transactional topologies, but {topology.topology_id!r} is a plain one and has no "
            "transactions; leave it out"
        )
    return partial(
        runner,
        topology,
        master=typed.request.master,
        conf=typed.request.conf,
        options=PlainRunOptions(stop_when_idle=typed.ending.stop_when_idle, executors_timeout_s=executors_timeout_s),
        factory_module=module_name,
    )


def _watched(
    typed: TypedRun, reached: Reached, figures: ShownFigures[Statistics], go: Callable[..., Statistics]
) -> tuple[Statistics, int | None]:
    """Runs with progress, signals and observers; returns the statistics and the number of the last signal."""
    assert reached.topology_id is not None
    with (
        typed.progress(reached.topology_id, figures) as progress,
        DrainOnSignal(progress.say, stop_timeout_s=typed.ending.stop_timeout) as signals,
        _observers(typed.observed, reached.topology_id, progress.note) as observers,
    ):

        def begun(coordinator: Any) -> None:
            reached.statistics = statistics = coordinator.statistics
            signals.drain_by(coordinator.drain)
            progress.begun()
            if isinstance(statistics, RunStatistics) and statistics.durability is not None and not typed.is_logged:
                progress.note(statistics.durability.first_line())  # the run logs it too

        statistics = go(on_start=begun, on_step=progress.starting, on_progress=progress.update, observers=observers)
        progress.update(statistics)  # a run with nothing to do has no event that would have reported it
        return statistics, signals.received


@contextmanager
def _observers(asked: ObserverOptions, topology_id: str, note: Callable[[str], None]) -> Iterator[list[Observer]]:
    """Yields the observers of the run, and serves its metrics meanwhile, as the options ask."""
    observers: list[Observer] = [TransactionSpans()] if asked.traces else []
    with ExitStack() as serving:
        if asked.metrics_port is not None:
            server = serving.enter_context(MetricsServer(topology_id, port=asked.metrics_port, host=asked.metrics_host))
            note(f"metrics on {server.url}")
            observers.append(server)
        yield observers
