"""What a commit costs the driver and the server, from the reports of commit tasks to the server's answer.

Run it::

    python -m benchmarks.commit_path
    python -m benchmarks.commit_path --case 1000:32 --rounds 10

No Spark: two commit tasks' reports on the word count of real text are made beforehand, as bytes. Then the driver
unpacks them, decides on the group and commits it, group after group. The control is the server's own limit, in the
same round and on a server with the same settings: `redis-benchmark -P 100 HINCRBY` over as many fields as the text has
words. Times are processor time, so other work on the machine affects them little. README.md says more.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import redis

from benchmarks.corpus import Corpus
from benchmarks.durability_levels import server
from benchmarks.harness import command_line, corpus_of, in_rounds, median, table
from committers.group_commit import Group, PublishStep, decide_group
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.commits.commit import Commit, CommitStatus
from state.commits.write_set import WriteSet
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind, ValueType

CASES = ("20:256", "100:128", "1000:1", "1000:32", "1000:64")
TASKS = (2, 3)
OPERATIONS = 400_000
"""About how many changes one measurement of a case commits."""
CONTROL_REQUESTS = 400_000
NO_LIMIT = 10**9
CONTROL = 0
"""In place of a number of lines."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A group, as commit tasks report it.

    Attributes:
        attempts: the group.
        wires: a packed report of each task.
    """

    attempts: tuple[TransactionAttempt, ...]
    wires: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one case cost.

    Attributes:
        transactions: number committed.
        operations: number of changes after merging.
        driver_s: processor time of the driver.
        server_s: processor time of the server.
    """

    transactions: int
    operations: int
    driver_s: float
    server_s: float

    def row(self) -> list[float]:
        """Returns changes a transaction, milliseconds a transaction, and changes per second of each one's time."""
        per_ms = 1000 / self.transactions
        cells = [self.operations / self.transactions, self.driver_s * per_ms, self.server_s * per_ms]
        return [*cells, self.operations / self.driver_s / 1e6, self.operations / self.server_s / 1e6]


def server_time_s(client: redis.Redis) -> float:
    """Returns the processor time that the server has used."""
    used: dict[str, Any] = client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def batches(corpus: Corpus, lines: int) -> Iterator[Counter[str]]:
    """Yields the words of one batch after another, round and round."""
    text = (line for path in cycle(corpus.files) for line in path.open(encoding="utf-8", newline="\n"))
    while True:
        yield Counter(" ".join(islice(text, lines)).split())


def reported(first_txid: int, group: int, source: Iterator[Counter[str]], shard_count: int = 1) -> Reported:
    """Makes the reports of two tasks, each with the words that its share of a fields grouping would hold."""
    attempts = tuple(TransactionAttempt(first_txid + place, 2**62 + first_txid + place) for place in range(group))
    totals = [WriteSet() for _ in TASKS]
    for _ in attempts:
        parts = [WriteSet() for _ in TASKS]
        shares = [part.state("counts", StateKind.HASH, ValueType.INT).increments for part in parts]
        for word, count in next(source).items():
            shares[zlib.crc32(word.encode()) % len(TASKS)][word] = count
        for total, part in zip(totals, parts, strict=True):
            total.then(part)
    for total in totals:
        total.pack(shard_count)
    results = ResultTable(map(AttemptResult, attempts))
    reports = [TaskReport(task, "store", results, [total]) for task, total in zip(TASKS, totals, strict=True)]
    return Reported(attempts, tuple(pack(report.to_wire()) for report in reports))


def publish(group: Reported, store: RedisStore) -> int:
    """Does what a driver does with the reports of a group, and returns the number of changes."""
    reports = [TaskReport.from_wire(unpack(wire)) for wire in group.wires]
    residues = dict.fromkeys(group.attempts, 0)
    decision = decide_group(Group(group.attempts, residues, frozenset(TASKS), ["store"], NO_LIMIT, True), reports)
    assert isinstance(decision.step, PublishStep)
    operations = decision.step.write_set.operations()
    reply = store.commit(Commit(group.attempts, decision.step.write_set))
    if reply.status is not CommitStatus.OK:
        sys.exit(f"commit was answered {reply.status}: {reply.detail}")
    return operations


def measure(lines: int, group: int, corpus: Corpus) -> Measured:
    """Measures one case on a server of its own."""
    source, groups, first_txid, made = batches(corpus, lines), [], 1, 0
    while made < OPERATIONS:
        groups.append(reported(first_txid, group, source))
        first_txid += group
        made += max(1, sum(map(len, groups[-1].wires)) // 10)  # about ten bytes each
    with server("everysec") as url, redis.Redis.from_url(url) as client:
        store = RedisStore(url, "bench")
        store.check_server()
        store.acquire(nonce="a" * 32, new_generation="b" * 32, topology="t", source_fingerprint="s")
        publish(groups[0], store)
        server_s, driver_s = server_time_s(client), time.process_time()
        operations = sum(publish(each, store) for each in groups[1:])
        driver_s = time.process_time() - driver_s
        server_s = server_time_s(client) - server_s
        store.close()
    return Measured(first_txid - 1 - group, operations, driver_s, server_s)


def control(corpus: Corpus) -> float:
    """Returns million HINCRBYs per second of the server's processor time, sent in pipelines of 100."""
    program = shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
    if program is None:
        sys.exit("the control needs redis-benchmark or valkey-benchmark on PATH; install redis-tools")
    with server("everysec") as url, redis.Redis.from_url(url) as client:
        port = url.rpartition(":")[2]
        command = [program, "-p", port, "-P", "100", "-n", str(CONTROL_REQUESTS), "-r", str(corpus.vocabulary), "-q"]
        command += ["HINCRBY", "counts", "__rand_int__", "1"]
        before = server_time_s(client)
        subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        return CONTROL_REQUESTS / (server_time_s(client) - before) / 1e6


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("commit_path", __doc__, rounds=5, option="--rounds", megabytes=50.0, has_json=False)
    words = "lines per transaction : transactions per commit (default %(default)s)"
    parser.add_argument("--case", nargs="+", default=CASES, help=words)
    return parser.parse_args(arguments)


def main() -> None:
    """Measures and prints."""
    options = parse_arguments()
    corpus = corpus_of(options)
    cases = [(CONTROL, 0), *((int(lines), int(group)) for lines, group in (case.split(":") for case in options.case))]
    measured = in_rounds(
        cases,
        lambda case: [control(corpus)] if case[0] == CONTROL else measure(case[0], case[1], corpus).row(),
        options.rounds,
        shown=lambda case, found: f"{case}: {found}",
    )
    limit = median([found for (found,) in measured[0][1]])
    cells = []
    for (lines, group), found in measured[1:]:
        operations, driver_ms, server_ms, driver_rate, server_rate = (
            median(column) for column in zip(*found, strict=True)
        )
        figures = [f"{operations:,.0f}", f"{driver_ms:.3f}", f"{server_ms:.3f}"]
        whole = 1 / (1 / driver_rate + 1 / server_rate)
        figures += [f"{driver_rate:.2f}", f"{server_rate:.2f}", f"{server_rate / limit:.2f}", f"{whole / limit:.2f}"]
        cells.append([f"{lines:,} lines, {group} a commit", *figures])
    headings = (
        "transactions of",
        "changes",
        "driver ms",
        "server ms",
        "M/s driver",
        "M/s server",
        "x control",
        "with driver",
    )
    print(table(headings, cells))
    print(f"control: redis-benchmark -P 100 HINCRBY, {limit:.2f} M/s of the server's processor time")


if __name__ == "__main__":
    main()
