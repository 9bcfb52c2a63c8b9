"""The figures of a run, for progress and for the final summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from coordinator.watching.statistics.bad_records import BadRecords
from coordinator.watching.statistics.wave_statistics import WaveStatistics
from state.printable import counted
from state.records.durability import DurabilityReport

if TYPE_CHECKING:
    from coordinator.watching.statistics.run_report import RunReport


@dataclass(slots=True, repr=False)
class RunStatistics(WaveStatistics):
    """The figures of one run of a transactional topology; times are seconds on the run's clock.

    `is_interrupted` means that the run was drained before a finite input had ended; a new run continues. `components`
    counts all attempts that tasks reported, and `waves` the processing phases.

    Attributes:
        last_txid: last committed txid, over all runs of the topology.
        released_txid: last txid known to be as durable as the run has asked, and released upstream; equals `last_txid`
            at level memory.
        committed: transactions committed by this run.
        tuples: tuples that the spout emitted in them.
        attempts: attempts issued.
        failed_attempts: attempts that failed, or were dropped because a lower one failed.
        failures: failed attempts by cause; see `FailureCause`.
        commit_groups: atomic commits.
        changes: changes of state in the commits.
        active: attempts in flight.
        busy_since_s: when the first of these started after an idle time; None before any attempt.
        cut_txid: highest txid cut, over all runs; transactions above `last_txid` are in flight, or have failed and were
            dropped.
        fraction: fraction of the input up to `cut_txid`, None if its size is unknown.
        counters: the components' counters, in committed attempts.
        bad_records: refused records of the input, with reasons, in these transactions.
        dead_letters: refused tuples stored with the transactions that this run committed.
        expired_parts: parts and fields of states that had expired when they were written, so that nothing is left of
            them; counted once per commit that writes them.
        notices: changes of topology and input since the run before, one sentence each.
        cluster: what is wrong with Spark's cluster, in one line; "" if all is well.
        lacks_executors: the run waits for executors.
        server_away_count: how often the server did not answer a call for a second or more.
        server_away_s: the total of these times, in seconds.
        quarantined: txids whose batches this run has quarantined.
        republished: quarantined txid -> the txid under which this run has republished it.
        republished_letters: dead letters that this run has republished.
        durability: the durability that the run waits for, and what its server can lose; None until the server was
            checked.
    """

    last_txid: int = 0
    released_txid: int = 0
    committed: int = 0
    tuples: int = 0
    attempts: int = 0
    failed_attempts: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    commit_groups: int = 0
    changes: int = 0
    active: int = 0
    busy_since_s: float | None = None
    cut_txid: int = 0
    fraction: float | None = None
    counters: Counter[str] = field(default_factory=Counter)
    bad_records: BadRecords = field(default_factory=BadRecords)
    dead_letters: int = 0
    expired_parts: int = 0
    notices: tuple[str, ...] = ()
    cluster: str = ""
    lacks_executors: bool = False
    server_away_count: int = 0
    server_away_s: float = 0.0
    quarantined: list[int] = field(default_factory=list)
    republished: dict[int, int] = field(default_factory=dict)
    republished_letters: int = 0
    durability: DurabilityReport | None = None

    def commit_lag_s(self, now_s: float) -> float:
        """Returns how long the transactions in flight have waited for a commit; 0 without any."""
        return self.since_commit_s(now_s) if self.active else 0.0

    def since_commit_s(self, now_s: float) -> float:
        """Returns the seconds since the last commit, or since the wave that ended a later idle time; 0 before any."""
        known = [each for each in (self.first_wave_s, self.busy_since_s, self.last_result_s) if each is not None]
        return max(0.0, now_s - max(known)) if known else 0.0

    def rate(self) -> float | None:
        """Returns the transactions per second after the first wave, in which Spark and its workers start.

        None if fewer transactions were committed after it than in it: a short run has no rate.
        """
        first = self.first_wave()
        before_s, before = (0.0, 0) if first is None else (first.since_start_s, first.size)
        count, seconds = self.committed - before, self.seconds - before_s
        return count / seconds if count >= before and seconds > 0 else None

    def copied(self) -> RunStatistics:
        """Returns an independent copy; call it on the run's own thread."""
        return replace(
            self,
            components={component_id: done.copied() for component_id, done in self.components.items()},
            history=self.history.copied(),
            failures=Counter(self.failures),
            counters=Counter(self.counters),
            bad_records=replace(self.bad_records, reasons=self.bad_records.reasons.copy()),
            quarantined=[*self.quarantined],
            republished={**self.republished},
        )

    def figures(self) -> list[tuple[str, Any]]:
        """Returns (name, value) of the figures that tables and reports show."""
        figures: list[tuple[str, Any]] = [
            ("committed transactions", self.committed),
            ("last txid", self.last_txid),
            ("tuples", self.tuples),
            ("seconds", round(self.seconds, 3)),
            *([] if (rate := self.rate()) is None else [("transactions/s", round(rate, 1))]),
            ("attempts", self.attempts),
            ("failed attempts", self.failed_attempts),
            ("waves", self.waves),
            ("commits", self.commit_groups),
        ]
        figures += [("quarantined", len(self.quarantined))] if self.quarantined else []
        figures += [("dead letters", self.dead_letters)] if self.dead_letters else []
        figures += [("parts expired when written", self.expired_parts)] if self.expired_parts else []
        figures += [("server away, seconds", round(self.server_away_s, 3))] if self.server_away_count else []
        figures += sorted(self.counters.items())
        return figures

    def report(self, title: str = "run") -> RunReport:
        """Returns a report of the run so far: figures, tables, and plots if matplotlib is installed.

        Args:
            title: the name of the run in the report.
        """
        from coordinator.watching.statistics.run_report import RunReport  # needed only for a report

        run = self.copied()
        return RunReport(title, run.figures(), "committed transactions", "attempts", run.components, run.history)

    def __repr__(self) -> str:
        return (
            f"RunStatistics({self.committed:,} committed up to txid {self.last_txid:,}, "
            f"{counted(self.tuples, 'tuple')} in {self.seconds:.1f} s, {self.failed_attempts:,} of "
            f"{counted(self.attempts, 'attempt')} failed, {counted(self.waves, 'wave')}, "
            f"{counted(self.commit_groups, 'commit')})"
        )

    def _repr_html_(self) -> str:
        from coordinator.watching.statistics.run_report import tables_of  # only a notebook needs it

        return tables_of("run", self.figures(), self.components)

    def to_dict(self, topology_id: str) -> dict[str, Any]:
        """Returns the fields of the final JSON line."""
        fields: dict[str, Any] = {
            "topology": topology_id,
            "committed": self.committed,
            "last_txid": self.last_txid,
            "tuples": self.tuples,
            "seconds": round(self.seconds, 3),
            "attempts": self.attempts,
            "failed_attempts": self.failed_attempts,
            "waves": self.waves,
            "commit_groups": self.commit_groups,
            "changes": self.changes,
        }
        if self.failures:
            fields["failures"] = dict(sorted(self.failures.items()))
        if self.quarantined:
            fields["quarantined"] = self.quarantined
        if self.republished:
            fields["republished"] = [{"quarantined": old, "txid": new} for old, new in self.republished.items()]
        if self.durability is not None:
            fields["durability"] = self.durability.to_dict(self.released_txid)
        if self.notices:
            fields["notices"] = list(self.notices)
        if self.server_away_count:
            fields["server_away"] = {"times": self.server_away_count, "seconds": round(self.server_away_s, 3)}
        if self.counters:
            fields["counters"] = dict(sorted(self.counters.items()))
        if self.bad_records.count:
            fields["bad_records"] = self.bad_records.to_dict(self.tuples)
        letters = {"republished_letters": self.republished_letters, "dead_letters": self.dead_letters}
        fields |= {name: count for name, count in (letters | {"expired_parts": self.expired_parts}).items() if count}
        if self.components:
            fields["components"] = {name: done.to_dict() for name, done in sorted(self.components.items())}
        return fields


def expired_when_written(count: int) -> str:
    """Returns the sentence on parts and fields that had expired when the run wrote them."""
    what = "part or field" if count == 1 else "parts or fields"
    return (
        f"{count:,} {what} had expired when written, by the server's clock, so nothing is left of what was committed "
        "to them; for old data, have expire_at return a later time (docs/state.md)"
    )
