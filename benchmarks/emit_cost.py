"""Nanoseconds per emitted row, by content and grouping: emit, choose and pack, and nothing else.

Run it::

    python -m benchmarks.emit_cost
    python -m benchmarks.emit_cost --rounds 30

The time is the thread's own processor time in the best of several rounds, so other work on the machine affects it
little. To compare two versions, run the benchmark alternately in both, more than once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time_ns
from typing import Any

from benchmarks.harness import command_line
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import FieldsGrouping, Grouping, ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.transport.outbox import SingleFrames
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from tests.support.tasks.outboxes import attempt_outbox

ROW_COUNT = 20_000
TARGETS = (21, 22)
ATTEMPT = TransactionAttempt(1, 1)

Rows = list[list[Any]]
ROWS: dict[str, Rows] = {
    "text": [[f"word{n % 5000}", n] for n in range(ROW_COUNT)],
    "text beyond ASCII": [[f"wörd{n % 5000}", n] for n in range(ROW_COUNT)],
    "integers": [[n % 5000, n] for n in range(ROW_COUNT)],
    "eight plain values": [[f"w{n}", n, 1.5, None, b"x", "abc", 7, "def"] for n in range(ROW_COUNT)],
    "text and a list of three": [[f"word{n % 5000}", [n, n + 1, "x"]] for n in range(ROW_COUNT)],
    "a mapping as the key": [[{"a": n % 5000, "b": 1}, n] for n in range(ROW_COUNT)],
}
GROUPINGS: dict[str, Grouping] = {"shuffle": ShuffleGrouping(), "fields": FieldsGrouping(("field0",))}


def emit_rows(rows: Rows, grouping: Grouping, *, at_once: bool) -> None:
    """Does what a bolt does when it emits these rows and finishes its batch."""
    fields = tuple(f"field{number}" for number in range(len(rows[0])))
    spec = StreamSpec("default", fields)
    streams = {"default": OutputStream(0, spec, (Subscriber("sink", TARGETS, grouping),))}
    wiring = TaskWiring(
        topology_id="emit-cost",
        component_id="emitter",
        task_id=10,
        task_index=0,
        task_count=1,
        tasks_of={"emitter": (10,), "sink": TARGETS},
        conf={},
        spec=b"",
        streams=streams,
        targets=TARGETS,
    )
    outbox = attempt_outbox(wiring, ATTEMPT, SingleFrames(lambda frame: None))
    collector = AttemptCollector(wiring, ATTEMPT, outbox)
    if at_once:
        collector.emit_all(rows)
    else:
        for row in rows:
            collector.emit(row)
    outbox.close()


def best_of(rounds: int, call: Callable[[], None]) -> float:
    """Returns the nanoseconds per row in the fastest round."""
    durations = []
    for _ in range(rounds):
        started_ns = thread_time_ns()
        call()
        durations.append(thread_time_ns() - started_ns)
    return min(durations) / ROW_COUNT


def main() -> None:
    """Prints a table."""
    rounds = command_line("emit_cost", __doc__, rounds=15, option="--rounds", has_json=False).parse_args().rounds
    print("| row | grouping | emit, ns | emit_all, ns |\n|---|---|---:|---:|")
    for kind, rows in ROWS.items():
        for name, grouping in GROUPINGS.items():
            one_by_one = best_of(rounds, partial(emit_rows, rows, grouping, at_once=False))
            at_once = best_of(rounds, partial(emit_rows, rows, grouping, at_once=True))
            print(f"| {kind} | {name} | {one_by_one:.0f} | {at_once:.0f} |")


if __name__ == "__main__":
    main()
