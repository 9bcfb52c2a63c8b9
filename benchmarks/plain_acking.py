"""What acking costs a plain topology: tuples per second with and without an acker, in process and on Spark.

Run it with ``python -m benchmarks.plain_acking``; README.md in this folder describes method and caveats.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from benchmarks.harness import Spread, command_line, describe, in_rounds, median, table, write_json
from benchmarks.process_tree import Role, processor_seconds_by_role
from coordinated_bolt.components.basic_bolts import BaseBasicBolt, BasicOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.spouts import BaseSpout, SpoutOutputCollector
from coordinated_bolt.streams.tuples import Tuple
from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from coordinator.plain.plain_coordinator import PlainCoordinator
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.run_plain import run_plain
from coordinator.testing.cluster.cluster import LocalCluster


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: "local" or "spark", with as many ackers."""

    engine: str
    ackers: int


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement.

    Attributes:
        tuples: tuples the spout emitted, all of which were acked.
        seconds: from the first emission to the last ack.
        waves: number of waves on Spark, 0 in process.
        processor_s: processor time on Spark by role, "driver", "java" and "workers"; the driver runs the spouts.
    """

    tuples: int
    seconds: float
    waves: int = 0
    processor_s: dict[str, float] = field(default_factory=dict)

    @property
    def tuples_per_s(self) -> float:
        """Tuples per second."""
        return self.tuples / self.seconds

    @property
    def processor_us(self) -> dict[str, float]:
        """Processor time per tuple in microseconds, by role."""
        return {role: seconds / self.tuples * 1e6 for role, seconds in self.processor_s.items()}


Measured = tuple[Side, list[Result]]


class Numbers(BaseSpout):
    """Emits 0, 1, 2, … with message ids.

    Args:
        count: how many its tasks emit together.
        per_call: how many a call emits; more than one with `emit_all`.
    """

    output_fields = ("number",)

    def __init__(self, count: int, per_call: int) -> None:
        self._count, self._per_call = count, per_call

    def open(self, conf: Any, context: TopologyContext, collector: SpoutOutputCollector) -> None:
        super().open(conf, context, collector)
        self._numbers = iter(range(context.task_index, self._count, context.task_count))

    def next_tuple(self) -> None:
        if self._per_call > 1:
            numbers = [*islice(self._numbers, self._per_call)]
            self.collector.emit_all([[number] for number in numbers], numbers)
            return
        number = next(self._numbers, None)
        if number is not None:
            self.collector.emit([number], number)

    def fail(self, message_id: Any) -> None:
        raise RuntimeError(f"message {message_id} failed, so the measurement is invalid")


class Pass(BaseBasicBolt):
    """Passes numbers on."""

    output_fields = ("number",)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit(tup.values)


class End(BaseBasicBolt):
    """Receives numbers and does nothing with them."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


def make_topology(count: int, *, ackers: int, pending: int, tasks: int, per_call: int = 1) -> PlainTopology:
    """Returns numbers -> pass -> end, shuffled; the bolts do nothing, so acking has the largest possible share."""
    builder = TopologyBuilder("plain_acking")
    builder.set_spout("numbers", Numbers(count, per_call), tasks)
    builder.set_bolt("pass", Pass(), tasks).shuffle_grouping("numbers")
    builder.set_bolt("end", End(), tasks).shuffle_grouping("pass")
    builder.set_acker_count(ackers)
    builder.set_max_spout_pending(pending)
    builder.disable_message_timeouts()
    return builder.build()


def measure_local(options: argparse.Namespace, ackers: int) -> Result:
    """Measures one run on LocalCluster."""
    topology = make_topology(options.local_tuples, ackers=ackers, pending=options.local_pending, tasks=options.tasks)
    with LocalCluster(seed=1) as cluster:
        run = cluster.submit(topology)
        started = time.perf_counter()
        run.run_until_idle()
        seconds = time.perf_counter() - started
        acked = len(run.acked("numbers"))
    if acked != options.local_tuples:
        raise RuntimeError(f"{acked} of {options.local_tuples} messages were acked")
    return Result(acked, seconds)


def measure_spark(options: argparse.Namespace, ackers: int, context: Any, count: int) -> Result:
    """Measures one run on a warm Spark context, from its first call of the spouts on."""
    topology = make_topology(
        count, ackers=ackers, pending=options.pending, tasks=options.tasks, per_call=options.per_call
    )
    bounds = PlainRunOptions(wave_tuples_max=options.wave_tuples, stop_when_idle=True, idle_rounds=1)
    before: dict[Role, float] = {}

    def begun(_: PlainCoordinator) -> None:
        before.update(processor_seconds_by_role(os.getpid()))

    found: PlainStatistics = run_plain(topology, spark=context, options=bounds, on_start=begun)
    after = processor_seconds_by_role(os.getpid())
    if found.acked != count:
        raise RuntimeError(f"{found.acked} of {count} messages were acked")
    used = {role.value: after[role] - before.get(role, 0.0) for role in (Role.DRIVER, Role.JAVA, Role.WORKERS)}
    return Result(count, found.seconds, found.waves, used)


def run_rounds(options: argparse.Namespace) -> list[Measured]:
    """Measures with and without ackers, in process and on Spark."""

    def shown(case: Side, result: Result) -> str:
        used = "".join(f", {role} {us:.1f} us" for role, us in result.processor_us.items())
        return f"{case.engine}, ackers {case.ackers}: {result.tuples_per_s:,.0f} tuples/s{used}"

    measured: list[Measured] = []
    if "local" in options.engine:
        sides = [Side("local", 0), Side("local", 1)]
        measured += in_rounds(sides, lambda side: measure_local(options, side.ackers), options.rounds, shown=shown)
    if "spark" in options.engine:
        context = open_context("plain_acking", options.master, {})
        try:
            for ackers in (1, 0):  # warm-up: workers start, Java compiles
                measure_spark(options, ackers, context, options.wave_tuples * 2)
            measured += in_rounds(
                [Side("spark", 0), Side("spark", 1)],
                lambda side: measure_spark(options, side.ackers, context, options.spark_tuples),
                options.rounds,
                shown=shown,
            )
        finally:
            stop_context(context)
    return measured


def report(measured: Sequence[Measured]) -> str:
    """Returns one row per engine and number of ackers; the ratio is the ratio of medians."""
    rates = {side: Spread.over([result.tuples_per_s for result in found]) for side, found in measured}
    rows = [
        [
            f"{side.engine}, ackers {side.ackers}",
            *rate.cells(),
            f"{rate.median / rates[Side(side.engine, 0)].median:.2f}",
        ]
        for side, rate in rates.items()
    ]
    return table(("plain topology", "tuples/s", "spread", "of ackers 0"), rows) + _processor_report(measured)


def _processor_report(measured: Sequence[Measured]) -> str:
    """Returns the processor time on Spark, which depends less than a rate on what else the machine does."""
    rows = []
    for side, results in measured:
        if side.engine == "spark":
            found = [result.processor_us for result in results]
            us = [median([each[role] for each in found]) for role in found[0]]
            rows.append([f"ackers {side.ackers}", *(f"{each:.1f}" for each in us), f"{sum(us):.1f}"])
    head = ("processor time, us a tuple", "driver", "java", "workers", "all")
    return f"\n\n{table(head, rows)}" if rows else ""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("plain_acking", __doc__, rounds=5, has_quick=True)
    add = parser.add_argument
    add("--engine", nargs="+", choices=["local", "spark"], default=["local", "spark"], help="default both")
    add("--local-tuples", type=int, default=20_000, help="tuples per run on LocalCluster (default %(default)s)")
    add("--local-pending", type=int, default=100, help="max spout pending there (default %(default)s)")
    add("--spark-tuples", type=int, default=1_000_000, help="tuples per run on Spark (default %(default)s)")
    add("--wave-tuples", type=int, default=50_000, help="most tuples per wave (default %(default)s)")
    add("--pending", type=int, default=100_000, help="max spout pending (default %(default)s)")
    add("--per-call", type=int, default=1, help="tuples that a call of the spout emits (default %(default)s)")
    add("--tasks", type=int, default=2, help="tasks of each component (default %(default)s)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.local_tuples, options.spark_tuples, options.wave_tuples, options.rounds = 1_000, 4_000, 2_000, 1
    return options


def main() -> int:
    """Measures and prints; returns 0."""
    options = parse_arguments()
    print(describe(), flush=True)
    measured = run_rounds(options)
    print(f"\n{report(measured)}")
    write_json(options.json, describe(), measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
