"""Runs a plain topology on Spark: connects Spark, the engine and the driver's loop, and closes them again.

It runs in waves. The spouts live in the driver. The tuples they emit for a wave go through one Spark job, in which
every bolt executes its share. At the end each message is acked or failed: it fails if a bolt failed it, if a bolt left
a tuple of its tree neither acked nor failed, or if the job crashed. One wave runs at a time. Meanwhile the spouts emit
the next one, which begins before the acks of the previous wave, or after its failures if that has crashed.

Differs from Storm, and from `LocalCluster`:

- A bolt's memory lasts for one wave: bolts and their hooks are prepared at the beginning of each. `cleanup` is called
  at its end; a bolt may still emit, ack and fail there. What has to outlive a wave, a bolt must write elsewhere, for
  example to Redis.
- There are no tick tuples.
- A wave that takes longer than twice the message timeout is ended, two seconds later at most, and its messages fail.
  Otherwise messages do not time out, and `reset_timeout` does nothing.
- Spark may run a task of a wave again, so a tuple may be executed twice although nothing failed.
- After a crash the next waves are smaller, until a tuple that kills its worker is alone. After `max_crashes` crashes
  of single tuples in a row, the run stops.
- Any exception of user code except a bolt's `FailedException` ends the run. Messages under way are neither acked nor
  failed; spouts are closed.
- A tuple without message id is lost if its wave crashes. Without ackers, messages are acked when they are emitted,
  before any bolt has seen them.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from coordinator.plain.plain_coordinator import PlainCoordinator
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_plan import PlainPlan, make_plain_plan
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.run import rare_collections
from coordinator.topology.building.planned_tasks import said
from coordinator.topology.building.topology_checks import check_is_a
from coordinator.watching.log_records import logs_of
from coordinator.watching.run_observer import Observer
from coordinator.watching.telemetry.run_logs import SlowLog
from state.printable import counted

if TYPE_CHECKING:
    from coordinator.engines.spark.session import SparkLease
    from coordinator.plain.spark.spark_plain_engine import SparkPlainEngine

_LOG = logging.getLogger("txbatch")


def run_plain(
    topology: PlainTopology,
    *,
    spark: Any = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    options: PlainRunOptions | None = None,
    on_start: Callable[[PlainCoordinator], None] | None = None,
    on_step: Callable[[str], None] | None = None,
    on_progress: Callable[[PlainStatistics], None] | None = None,
    factory_module: str | None = None,
    observers: Sequence[Observer] = (),
) -> PlainStatistics:
    """Runs a plain topology until it is drained or, with `stop_when_idle`, until its spouts have nothing more (driver).

    Processing is at least once, provided that the spouts emit again what failed. There is no state and no Redis: bolts
    write where they like, and may write the same thing twice. It runs in waves, and therefore differs from Storm: see
    the docstring of this module.

    Args:
        topology: what `TopologyBuilder.build` returned.
        spark: a SparkSession or SparkContext of yours, which is left running; None starts one.
        master: Spark master of the session that is started.
        conf: Spark settings of the session that is started; they take precedence over ours.
        options: limits of the run.
        on_start: called with the coordinator before its spouts are opened, so that you can `drain` it later.
        on_step: as for `run`.
        on_progress: called with the statistics after every wave, on the calling thread.
        factory_module: name of a module to ship in addition to those of the components' classes.
        observers: functions that are notified of waves as they happen, on this thread; see
            `coordinator.watching.run_observer`.

    Returns:
        The statistics of this run.

    Raises:
        TopologyError: the topology was refused before anything was started.
        EngineError: Spark is gone, cannot be reached, or cannot work.
        TransactionError: see `PlainCoordinator.run`.

    Source: backtype.storm.StormSubmitter.
    """
    check_is_a(PlainTopology, topology, "use run for a transactional topology")
    # imported here because importing Spark takes as long as everything else
    from coordinator.engines.spark.session import spark_lease
    from coordinator.engines.spark.shipping import pickle_spec, ship_topology

    plan = make_plain_plan(topology, pickle_spec)
    _warn_of_ticks(plan)
    tell = on_step or (lambda _: None)
    tell(f"starting Spark with master {master}" if spark is None else "using the given Spark session")
    with logs_of(topology.topology_id), spark_lease(topology.topology_id, spark, master, conf or {}) as lease:
        tell(f"preparing {counted(len(plan.wirings), 'task')}{said(topology)}")
        code = lease.watch.call(lambda: ship_topology(lease.context, topology, factory_module))
        options = options or PlainRunOptions()
        with closing(_engine(lease, plan, code, options)) as engine, rare_collections():
            coordinator = PlainCoordinator(
                plan,
                engine,
                options,
                clock=time.monotonic,
                clock_ns=time.monotonic_ns,
                sleep=time.sleep,
                draw_bits=secrets.randbits,
                on_progress=on_progress,
                observers=[SlowLog(time.monotonic), *observers],
            )
            if on_start is not None:
                on_start(coordinator)
            return coordinator.run()


def _engine(lease: SparkLease, plan: PlainPlan, code: str, options: PlainRunOptions) -> SparkPlainEngine:
    from coordinator.plain.spark.spark_plain_engine import SparkPlainEngine

    timeout_s = None if plan.message_timeout_s is None else 2 * plan.message_timeout_s
    return SparkPlainEngine(
        lease, plan, code=code, wave_timeout_s=timeout_s, executors_timeout_s=options.executors_timeout_s
    )


def _warn_of_ticks(plan: PlainPlan) -> None:
    ticking = {plan.wirings[task].component_id for task in plan.tick_periods_s}
    if ticking:
        _LOG.warning("%s: tick tuples were asked for, but there are none on Spark", ", ".join(sorted(ticking)))
