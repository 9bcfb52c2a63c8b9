"""Prints the result of a run at its end; with ``--json``, also how far a failed run got, and why it failed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coordinator.operating.cli.exits import exit_code_of, sentence_of
from coordinator.operating.cli.figures import plain_summary_line, summary_line
from coordinator.operating.cli.logs import log_sentence
from coordinator.operating.cli.standard_streams import is_without_reader
from coordinator.operating.cli.terminal import say, say_json, without
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.plain.plain_topology import PlainTopology
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.component import ComponentKind
from coordinator.topology.building.topology import Topology
from coordinator.watching.statistics.run_statistics import RunStatistics, expired_when_written
from state.errors import TransactionError
from state.keys import Keys
from state.kinds.handles import declared_states, key_shown
from state.printable import SENTENCE_LIMIT, block, counted, one_line

TXIDS_SHOWN = 10
WARNED_FRACTION = 0.1
"""A warning is printed if more than this part of the input is bad records or dead letters."""


@dataclass(slots=True)
class Reached:
    """How far a run got; filled in as it progresses.

    The topology id is None until the factory has returned a topology, the statistics until the run has begun.
    """

    topology_id: str | None = None
    statistics: RunStatistics | PlainStatistics | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures so far; only the topology id if the run has not begun."""
        if self.topology_id is None or self.statistics is None:
            return {"topology": self.topology_id}
        return self.statistics.to_dict(self.topology_id)


@contextmanager
def failure_printed(hidden: Mapping[str, str], *, is_wanted: bool) -> Iterator[Reached]:
    """Prints a line of JSON on standard output if the block raises, and lets the error pass (once a command)."""
    reached = Reached()
    try:
        yield reached
    except BaseException as error:
        if is_wanted and not is_without_reader(error):
            say_json({**reached.to_dict(), "error": _fields_of(error, hidden)})
        raise


def _fields_of(error: BaseException, hidden: Mapping[str, str]) -> dict[str, Any]:
    """Returns exit code, message, and the entry of the troubleshooting page if there is one."""
    message = without(hidden, block(sentence_of(error), line_limit=SENTENCE_LIMIT))
    fields: dict[str, Any] = {"exit_code": int(exit_code_of(error)), "message": message}
    if isinstance(error, TransactionError):
        fields["trouble"] = error.trouble.value
    return fields


def print_result(
    topology: Topology | PlainTopology,
    statistics: RunStatistics | PlainStatistics,
    server: ServerChoice,
    *,
    as_json: bool,
    is_logged: bool,
) -> None:
    figures = statistics.to_dict(topology.topology_id)
    if isinstance(statistics, RunStatistics):
        assert isinstance(topology, Topology)
        lines = _summary(topology, statistics, server)
    else:
        lines = _plain_summary(topology.topology_id, statistics)
    if as_json:
        say_json(figures)
    elif is_logged:
        log_sentence("\n".join(lines), figures=figures)
    else:
        say(*lines)
    for line in _warnings(topology, statistics):
        if is_logged:
            log_sentence(line, logging.WARNING)
        else:
            say(f"txbatch: {line}", to=sys.stderr)


def _warnings(topology: Topology | PlainTopology, statistics: RunStatistics | PlainStatistics) -> Iterator[str]:
    """Yields warnings about a run that has ended well: input that is not in the state, and unwritten state."""
    if isinstance(topology, PlainTopology) or isinstance(statistics, PlainStatistics):
        return
    bad, tuples = statistics.bad_records, counted(statistics.tuples, "tuple")
    if bad.count and bad.count > WARNED_FRACTION * bad.of(statistics.tuples):
        sentence = bad.in_words(statistics.tuples)
        yield f"BAD RECORDS are not in the state: {sentence}; --max-bad-fraction ends such a run before it commits them"
    if statistics.dead_letters > max(bad.count, WARNED_FRACTION * statistics.tuples):
        yield (
            f"DEAD LETTERS are not in the state: {statistics.dead_letters:,}, and the input had {tuples}; see "
            f"`txbatch dead-letters list {topology.topology_id}`"
        )
    if statistics.quarantined:
        yield _quarantine_line(topology.topology_id, statistics.quarantined)
    if statistics.expired_parts:
        yield f"EXPIRED: {expired_when_written(statistics.expired_parts)}"
    if statistics.committed and not any(each.kind is ComponentKind.COMMITTER for each in topology.components):
        yield (
            f"NOTHING KEPT: {counted(statistics.committed, 'transaction')} processed, with {tuples}, and the topology "
            "has no committer: no state holds anything of them; add one, or end the stream with count_by or its like"
        )
    if statistics.committed and not statistics.changes and topology.states:
        yield (
            f"NOTHING WRITTEN: {counted(statistics.committed, 'transaction')} committed, with {tuples}, and none "
            "changed a state; `txbatch dry-run` shows what each emits"
        )


def _quarantine_line(topology_id: str, txids: Sequence[int]) -> str:
    shown = ", ".join(f"{txid:,}" for txid in txids[:TXIDS_SHOWN])
    shown += f" and {len(txids) - TXIDS_SHOWN:,} more" if len(txids) > TXIDS_SHOWN else ""
    batches = "batch" if len(txids) == 1 else "batches"
    return (
        f"QUARANTINED, and therefore not in the state: the {batches} of txid {shown}; see "
        f"`txbatch quarantine list {topology_id}`"
    )


def _plain_summary(topology_id: str, statistics: PlainStatistics) -> list[str]:
    ended = "stopped before its spouts were idle" if statistics.is_interrupted else "done"
    lines = [f"{topology_id}: {ended}", f"  {plain_summary_line(statistics)}"]
    if statistics.seconds > 0:
        lines.append(f"  {statistics.emitted / statistics.seconds:,.0f} tuples/s")
    return lines


def _summary(topology: Topology, statistics: RunStatistics, server: ServerChoice) -> list[str]:
    first, rate = statistics.first_wave(), statistics.rate()
    ended = "stopped before the end of its input; run again to continue" if statistics.is_interrupted else "done"
    lines = [f"{topology.topology_id}: {ended}", f"  {summary_line(statistics)}"]
    if statistics.seconds > 0:
        parts = [] if first is None else [f"first wave {first.since_start_s:.1f} s"]
        if rate is not None:
            tuples = rate * statistics.tuples / max(1, statistics.committed)
            parts.append(f"{'then ' if parts else ''}{rate:,.1f} transactions/s, {tuples:,.0f} tuples/s")
        parts += [counted(statistics.waves, "wave"), counted(statistics.commit_groups, "commit")]
        lines.append(f"  {', '.join(parts)}")
    if statistics.server_away_count:
        times = "once" if statistics.server_away_count == 1 else f"{statistics.server_away_count:,} times"
        lines.append(
            f"  the server was unreachable {times}, for {statistics.server_away_s:.1f} s in all; nothing was lost"
        )
    lines += [
        f"  quarantined txid {old:,} was republished as txid {new:,}" for old, new in statistics.republished.items()
    ]
    if statistics.republished_letters:
        lines.append(f"  {counted(statistics.republished_letters, 'dead letter')} published")
    if statistics.bad_records.count:
        lines.append(f"  {statistics.bad_records.in_words(statistics.tuples)}")
    if statistics.dead_letters:
        letters = counted(statistics.dead_letters, "dead letter")
        lines.append(f"  {letters} in this run; `txbatch dead-letters list {topology.topology_id}` lists all there are")
    if statistics.durability is not None and (durable := statistics.durability.last_line(statistics.released_txid)):
        lines.append(f"  {durable}")
    lines += [f"  counter {one_line(name)}: {count:,}" for name, count in sorted(statistics.counters.items())]
    keys = Keys(topology.topology_id)
    for component in topology.components:
        for handle in declared_states(component.spec).values():
            lines.append(f"  {handle.kind.value} {key_shown(handle, keys, topology.shard_count)} in {server}")
    return lines
