"""Runs a transactional topology on Spark: connects server, store, Spark and coordinator, and closes them again."""

from __future__ import annotations

import gc
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Unpack

from coordinator.run_request import RunKeywords, RunRequest, spelled_out
from coordinator.server_choice import ServerChoice, open_store
from coordinator.spark_start import SparkStart
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.letter_streams import with_letter_streams
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_checks import check_is_a
from coordinator.topology.planning.pickling import pickle_spec
from coordinator.topology.planning.plan import make_plan
from coordinator.topology.planning.task_wirings import PickleSpec
from coordinator.transactional.assembly import assembled, refuse_early
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.engine import Engine
from coordinator.transactional.options import HANG_REPORT_S, EngineName, RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice
from coordinator.transactional.surroundings import RunEnvironment
from coordinator.watching.log_records import logs_of
from coordinator.watching.pulse.pulse_start import pulse_observer
from coordinator.watching.run_observer import Observation, Observer, Observers, RunBegan, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.run_logs import RetryLog, SlowLog
from state.errors import FencedError, TransactionError
from state.printable import one_line
from state.records.durability import Durability, DurabilityLevel
from state.redis_admin.topology_reader import TopologyReader
from state.redis_owner.store import RedisStore

_LOG = logging.getLogger("txbatch")
RETRY_BACKOFF_S = 0.2
"""The pause before the third attempt at a txid, unless the options set another one."""
COLLECTOR_THRESHOLDS = (50_000, 20, 20)
"""The thresholds of Python's cycle collector during a run, on the driver.

By default the collector walks the young objects every few hundred objects, and now and then everything that is loaded.
A run makes many objects, such as records of attempts in flight and reports of tasks, and they form no cycles.
"""
NAME_TRIES, NAME_PAUSE_S = 8, 0.25
"""How often, and with which pause, to look where the newer run reports to be running, soon after its takeover."""


@spelled_out(RunKeywords)
def run(topology: Topology, **asked: Unpack[RunKeywords]) -> RunStatistics:
    """Runs a topology from its first uncommitted transaction to the end of its input (driver).

    Args:
        topology: what `TransactionalTopologyBuilder.build` returned.
        redis_url: redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://. If neither it nor `data_dir` is
            given, ``TXBATCH_REDIS_URL`` from the environment is used, as on the command line; without that, an embedded
            server is started or joined.
        data_dir: directory of the embedded server, ``.txbatch`` by default; excludes `redis_url`.
        allow_plaintext: connect to a server on another machine without TLS, on a network you trust.
        spark: a SparkSession or SparkContext of yours, which is left running; None starts one.
        master: Spark master of the session that is started.
        conf: Spark settings of the session that is started; they take precedence over ours.
        options: limits of the run.
        on_start: called with the coordinator once it owns the topology, so that you can `drain` it later.
        on_step: called before each step of the start, with a phrase that describes the step.
        on_progress: called with the statistics after every event, on the calling thread.
        factory_module: name of a module to ship in addition to those of the components' classes.
        republish: txids of quarantined batches, or "all": the run publishes each as a new transaction, exactly once,
            and removes its record in the same step. It first commits what an earlier run has begun, and reads no new
            input. None, the default, reads the input and republishes nothing.
        republish_letters: ids of components, letters as (txid, number), or "all": the run publishes these dead letters,
            or those of the components, as new transactions, each exactly once, through the components that refused
            them, and removes them in the same step. Otherwise as `republish`, which it excludes.
        observers: functions that are notified of waves, commits and failures as they happen, on the run's thread; see
            `coordinator.watching.run_observer`. `on_progress` is for figures to show, this is for metrics and traces.
        engine: "spark", or "local" for the same stages in this process, without Spark and Java; see docs/spark.md.

    Returns:
        The statistics of this run.

    Raises:
        TopologyError: the topology or an argument was refused before anything was started.
        EngineError: Spark is gone, cannot be reached, or cannot work.
        TransactionError: see `Coordinator.run`.
    """
    return run_as(topology, RunRequest.of(asked))


def run_as(topology: Topology, request: RunRequest) -> RunStatistics:
    """Runs a topology as requested; see `run`."""
    with started(topology, request) as coordinator:
        if request.on_start is not None:
            request.on_start(coordinator)
        return coordinator.run()


@contextmanager
def started(topology: Topology, request: RunRequest) -> Iterator[Coordinator]:
    """Becomes the owner of a topology and yields the coordinator of its run, which has not begun.

    Raises:
        TransactionError: see `run`.
    """
    check_is_a(Topology, topology, "use run_plain for a plain topology")
    request.check_engine(topology)
    choice, server, tell = request.choice(), request.server, request.report_step
    if choice is None:
        SpoutKind(topology.spout.spec).find_input()
    topology = with_letter_streams(topology) if isinstance(choice, LetterChoice) else topology
    asked = request.options.asked_durability(SpoutKind(topology.spout.spec).destruction)
    options = replace(request.options.or_backoff(RETRY_BACKOFF_S), durability=asked.level)
    plan = make_plan(topology, _pickler(request.engine))
    nonce = secrets.token_hex(16)
    with ExitStack() as resources:
        enter = resources.enter_context
        enter(logs_of(topology.topology_id))
        tell(f"{'starting' if server.redis_url is None else 'connecting to'} {server}")
        store, url = enter(_state_store(topology, server, asked))
        is_first = store.look() is None  # a first run that cannot start Spark leaves nothing behind
        if choice is None:
            refuse_early(topology, plan, store, options, pause=time.sleep)
        spark = SparkStart(topology, plan, request, options, url=url, nonce=nonce)
        sparks = enter(ExitStack())  # separate: Spark may start late, and still ends after the run
        engine: Engine
        late = spark.later(sparks) if choice is None and spark.may_be_needless(store) else None
        if late is None:
            topology, engine = spark.now(sparks)
        else:
            engine = late
        tell("comparing topology and input with what is stored")
        coordinator = enter(
            assembled(
                topology,
                plan,
                store,
                engine,
                options,
                around=RunEnvironment(
                    nonce=nonce,
                    new_generation=secrets.token_hex(16),
                    clock=time.monotonic,
                    new_attempt_id=partial(secrets.randbits, 64),
                    pause=time.sleep,
                    wall_clock=time.time,
                    observers=Observers(_observers(request, store, options, spark.master())),
                    cancel_later_s=HANG_REPORT_S,
                    begin=late.begin if late is not None and is_first else None,
                ),
                choice=choice,
            )
        )
        enter(rare_collections())
        enter(newer_run_named(store))
        yield coordinator


def _pickler(engine: str) -> PickleSpec:
    """Returns the pickler for components: Spark's own is the only one that its executors are certain to have."""
    if engine == EngineName.LOCAL:
        return pickle_spec
    # imported here because importing Spark takes as long as everything else
    from coordinator.engines.spark import shipping

    return shipping.pickle_spec


def _observers(request: RunRequest, store: RedisStore, options: RunOptions, master: str) -> list[Observer]:
    """Returns the observers of the run."""
    durability, history = options.asked_durability().level, options.history
    return [
        *([] if request.on_progress is None else [ProgressCallback(request.on_progress)]),
        RetryLog(time.monotonic),
        SlowLog(time.monotonic),
        *([pulse_observer(store, durability=durability, history=history, master=master)] if options.pulse else []),
        *request.observers,
    ]


class ProgressCallback:
    """An observer that calls back after each turn in which something has ended.

    Args:
        on_progress: called with the statistics, on the run's thread; if it raises an error, the run continues.
    """

    def __init__(self, on_progress: Callable[[RunStatistics], None]) -> None:
        self._on_progress = on_progress
        self._statistics = RunStatistics()

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case RunBegan(statistics=RunStatistics() as statistics):
                self._statistics = statistics
            case TurnEnded(has_progressed=True):
                try:
                    self._on_progress(self._statistics)
                except Exception:  # noqa: BLE001 - a callback must not end a run
                    _LOG.exception("the on_progress callback raised")
            case _:
                pass


@contextmanager
def _state_store(topology: Topology, server: ServerChoice, asked: Durability) -> Iterator[tuple[RedisStore, str]]:
    topology_id = topology.topology_id
    _LOG.info("the state of topology %r is in %s", topology_id, server)
    with (
        server.address(syncs_always=asked.level is DurabilityLevel.FSYNC) as (url, revive),
        closing(open_store(url, topology, revive=revive)) as store,
    ):
        store.check_server(asked, expires=topology.expires, fields_expire=topology.fields_expire)
        _LOG.info("durability of topology %r: %s", topology_id, store.durability.first_line())
        yield store, url


@contextmanager
def rare_collections() -> Iterator[None]:
    """Makes the cycle collector run less often during the block, and restores the caller's thresholds after it."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def newer_run_named(store: RedisStore, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Encloses a run: the error of a run that was taken over names the newer run, if that reports itself in time."""
    try:
        yield
    except FencedError as error:
        for number in range(0 if error.was_dropped else NAME_TRIES):
            if number:
                pause(NAME_PAUSE_S)
            try:
                seen = TopologyReader(store.connection).overview(store.keys.topology_id)
            except TransactionError:
                break  # the server cannot be asked
            if seen is not None and seen.pulse is not None:
                owner = seen.pulse.run
                where = f"on {one_line(owner.host)}, pid {owner.pid}, as {one_line(owner.user)}"
                raise FencedError(error.topology_id, by=where) from error
        raise
