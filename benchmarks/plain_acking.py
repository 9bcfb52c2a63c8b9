"""What acking costs a plain topology: tuples per second with and without an acker, in process and on Spark.

Run it with ``python -m benchmarks.plain_acking``; README.md in this folder describes method and caveats.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measurement import median
from benchmarks.process_tree import Role, processor_seconds_by_role
from benchmarks.report import table
from coordinated_bolt.components.basic_bolts import BaseBasicBolt, BasicOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.spouts import BaseSpout, SpoutOutputCollector
from coordinated_bolt.streams.tuples import Tuple
from coordinator.engines.local.cluster import LocalCluster
from coordinator.engines.spark.session import close_context, open_context
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.run_plain import run_plain
from coordinator.watching.statistics.plain_statistics import PlainStatistics


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement.

    Attributes:
        engine: "local" or "spark".
        ackers: number of acker tasks, 0 or 1.
        tuples: tuples the spout emitted, all of which were acked.
        seconds: from the first emission to the last ack.
        waves: number of waves on Spark, 0 in process.
        processor_s: processor time on Spark by role, "driver", "java" and "workers"; the driver runs the spouts.
    """

    engine: str
    ackers: int
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


class Numbers(BaseSpout):
    """Emits 0, 1, 2, … with message ids.

    Args:
        count: how many its tasks emit together.
    """

    output_fields = ("number",)

    def __init__(self, count: int) -> None:
        self._count = count

    def open(self, conf: Any, context: TopologyContext, collector: SpoutOutputCollector) -> None:
        super().open(conf, context, collector)
        self._numbers = iter(range(context.task_index, self._count, context.task_count))

    def next_tuple(self) -> None:
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


def make_topology(count: int, *, ackers: int, pending: int, tasks: int) -> PlainTopology:
    """Returns numbers -> pass -> end, shuffled; the bolts do nothing, so acking has the largest possible share."""
    builder = TopologyBuilder("plain_acking")
    builder.set_spout("numbers", Numbers(count), tasks)
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
    return Result("local", ackers, acked, seconds)


def measure_spark(options: argparse.Namespace, ackers: int, context: Any, count: int) -> Result:
    """Measures one run on a warm Spark context.

    Without ackers every message is acked at once, and only the bound on a wave's tuples applies, not
    `max_spout_pending`. Both have the same value here, so that the waves are equal.
    """
    wave = options.wave_tuples
    topology = make_topology(count, ackers=ackers, pending=wave, tasks=options.tasks)
    bounds = PlainRunOptions(wave_tuples_max=wave, wave_fill_s=60.0, stop_when_idle=True, idle_rounds=1)
    before = processor_seconds_by_role(os.getpid())
    found: PlainStatistics = run_plain(topology, spark=context, options=bounds)
    after = processor_seconds_by_role(os.getpid())
    if found.acked != count or found.waves != -(-count // wave):
        raise RuntimeError(f"{found.acked} of {count} messages were acked, in {found.waves} waves")
    used = {role.value: after[role] - before.get(role, 0.0) for role in (Role.DRIVER, Role.JAVA, Role.WORKERS)}
    return Result("spark", ackers, count, found.seconds, found.waves, used)


def run_rounds(options: argparse.Namespace) -> list[Result]:
    """Measures with and without ackers; the order alternates from round to round."""
    results: list[Result] = []

    def measure(name: str, how: Callable[[int], Result]) -> None:
        for number in range(options.repeat):
            for ackers in (0, 1) if number % 2 else (1, 0):
                result = how(ackers)
                results.append(result)
                rate = f"{result.tuples_per_s:,.0f} tuples/s (load {os.getloadavg()[0]:.1f})"
                used = "".join(f", {role} {us:.1f} us" for role, us in result.processor_us.items())
                print(f"round {number + 1}/{options.repeat}: {name}, ackers {ackers}: {rate}{used}", file=sys.stderr)

    if "local" in options.engine:
        measure("local", lambda ackers: measure_local(options, ackers))
    if "spark" in options.engine:
        context = open_context("plain_acking", options.master, {})
        try:
            for ackers in (1, 0):  # warm-up: workers start, Java compiles
                measure_spark(options, ackers, context, options.wave_tuples * 2)
            measure("spark", lambda ackers: measure_spark(options, ackers, context, options.spark_tuples))
        finally:
            close_context(context)
    return results


def report(results: Sequence[Result]) -> str:
    """Returns one row per engine and number of ackers; the ratio is the ratio of medians."""
    rows = []
    for engine in dict.fromkeys(result.engine for result in results):
        rates = {
            ackers: [r.tuples_per_s for r in results if (r.engine, r.ackers) == (engine, ackers)] for ackers in (0, 1)
        }
        for ackers, found in rates.items():
            ratio = median(found) / median(rates[0])
            spread = f"{min(found):,.0f}-{max(found):,.0f}"
            rows.append([f"{engine}, ackers {ackers}", f"{median(found):,.0f}", spread, f"{ratio:.2f}"])
    return table(("plain topology", "tuples/s", "spread", "of ackers 0"), rows) + _processor_report(results)


def _processor_report(results: Sequence[Result]) -> str:
    """Returns the processor time on Spark, which depends less than a rate on what else the machine does."""
    rows = []
    for ackers in (0, 1):
        found = [result.processor_us for result in results if result.processor_s and result.ackers == ackers]
        if found:
            us = [median([each[role] for each in found]) for role in found[0]]
            rows.append([f"ackers {ackers}", *(f"{each:.1f}" for each in us), f"{sum(us):.1f}"])
    head = ("processor time, us a tuple", "driver", "java", "workers", "all")
    return f"\n\n{table(head, rows)}" if rows else ""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.plain_acking", description=__doc__)
    add = parser.add_argument
    add("--engine", nargs="+", choices=["local", "spark"], default=["local", "spark"], help="default both")
    add("--local-tuples", type=int, default=20_000, help="tuples per run on LocalCluster (default %(default)s)")
    add("--local-pending", type=int, default=100, help="max spout pending there (default %(default)s)")
    add("--spark-tuples", type=int, default=200_000, help="tuples per run on Spark (default %(default)s)")
    add("--wave-tuples", type=int, default=20_000, help="tuples per wave (default %(default)s)")
    add("--tasks", type=int, default=2, help="tasks of each component (default %(default)s)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--repeat", type=int, default=5, help="rounds (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every single result to FILE")
    add("--quick", action="store_true", help="one short round: shows that it works, not how fast it is")
    options = parser.parse_args(arguments)
    if options.quick:
        options.local_tuples, options.spark_tuples, options.wave_tuples, options.repeat = 1_000, 4_000, 2_000, 1
    return options


def describe() -> str:
    """Describes machine and versions, for later readers of the figures."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "msgpack"))
    return f"{now}; {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"


def main() -> int:
    """Measures and prints; returns 0."""
    options = parse_arguments()
    print(describe(), flush=True)
    results = run_rounds(options)
    print(f"\n{report(results)}")
    if options.json:
        entries = [asdict(result) for result in results]
        options.json.write_text(json.dumps({"about": describe(), "results": entries}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
