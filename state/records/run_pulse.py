"""What a run tells about itself while it runs, as values: who runs, in which state, how fast, and since when. Pure.

The driver writes them about once a second, apart from the commits; see `redis_admin/pulse`. They are for people and
dashboards to read, and no decision of a run depends on them. Commit positions, receipts and metadata are not taken
from here: those travel with the commits, so they are exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeVar

Value = TypeVar("Value")
PULSE_EVERY_S = 1.0
"""How often a run writes its pulse."""
SILENT_AFTER_S = 10.0
"""A run that has written nothing for this time is probably gone: it was killed, or cannot reach the server."""
SAMPLES_KEPT = 600
"""Samples in the ring: the last ten minutes at one a second."""

RUN_FIELD, NOW_FIELD, SEEN_FIELD, SAMPLE_PREFIX = "run", "now", "seen", "sample."
STORIES_FROM_FIELD = "stories_from"
"""Kept by the server: the lowest txid that may have a story."""


class RunState(StrEnum):
    """What a run says it is doing."""

    STARTING = "starting"
    """It owns the topology, and has neither begun its first wave nor found that there is nothing to do."""
    RUNNING = "running"
    DRAINING = "draining"
    """It cuts nothing more, commits what is in flight, and ends."""
    WAITING = "waiting for the server"
    """What is committed has to become as durable as the run has asked before it continues."""
    WITHOUT_EXECUTORS = "waiting for executors"
    """Spark runs none of its tasks; nothing counts against any batch."""
    DONE = "done"
    STOPPED = "stopped"
    """It ended before its input did: it was drained, or interrupted."""
    FAILED = "failed"

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is written."""
        return self in (RunState.DONE, RunState.STOPPED, RunState.FAILED)


class Standing(StrEnum):
    """What a reader may conclude about a topology's last run."""

    RUNNING = "running"
    ENDED = "ended"
    SILENT = "silent"
    """It has not said that it ended, and is gone or not heard of any more."""
    UNTOLD = "untold"
    """It has never written a pulse, and none is connected."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Who runs a topology, where, and with what; written once, when the run owns it.

    Attributes:
        fence: another one in the control key means that another run has taken over since.
        started_at: seconds since the epoch.
        versions: of python, pyspark and txbatch.
        history: how many transactions keep their receipt, metadata and story.
        pid_space: where `pid` counts; see `state.redis_client.presence`.
    """

    fence: str = ""
    host: str = ""
    pid: int = 0
    user: str = ""
    started_at: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    master: str = ""
    durability: str = ""
    server_can_lose: str = ""
    history: int = 0
    pid_space: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """How some recent durations are spread, in seconds: half of them, 95 %, 99 % and all are at most this long."""

    count: int = 0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    maximum: float = 0.0


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """What a component has done in a run; repeated work counts again.

    Attributes:
        tuples_in: tuples executed, 0 for a spout.
        tuples_out: tuples emitted.
        failed: executed tuples of attempts that failed or were dropped.
        dead_letters: tuples refused.
        busy_s: processor and waiting time of its tasks, in seconds.
    """

    tuples_in: int = 0
    tuples_out: int = 0
    failed: int = 0
    dead_letters: int = 0
    busy_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LastFailure:
    """The attempt that failed last, and when, in seconds since the epoch; for its kind see `RunFigures.failures`.

    `last_txid` is above `txid` if it was one of the transactions from there up to this one, not known which: their wave
    crashed.
    """

    txid: int = 0
    attempt: str = ""
    kind: str = ""
    reason: str = ""
    at: float = 0.0
    last_txid: int = 0


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run at one moment.

    Attributes:
        at: when they were taken, seconds since the epoch. A run whose driver is busy, or waits, keeps its old ones.
        state: what it is doing.
        error: first line of what ended it, "" if nothing did.
        cluster: the matter with Spark's cluster, in one line; "" if all is well.
        last_txid, released_txid: last txid committed, over all runs, and released upstream.
        committed, tuples: transactions this run has committed, and tuples its spout emitted in them.
        attempts, failed_attempts, waves, commit_groups: how many there were.
        window: state -> attempts in flight: waiting, processing, processed, committing.
        transactions_per_s, tuples_per_s: committed over the last ten seconds.
        lag_s: seconds since the last commit while something is in flight; 0 if nothing is.
        fraction: part of the input that is cut, None if its size is unknown.
        latency_s: from the first cut of a transaction to its commit, recent ones.
        commit_s: what the server took for a commit, recent ones.
        wave_s: what the processing of a wave took, recent ones.
        components: component id -> what it has done.
        failures: kind -> attempts that failed for it. "lower failed" ones were dropped because a lower one had failed.
        last_failure: None if nothing has failed.
        server_away_count, server_away_s: how often the server did not answer, and for how long in all.
        quarantined, dead_letters: batches that this run has set aside, and tuples refused in what it has committed.
    """

    at: float = 0.0
    state: RunState = RunState.STARTING
    error: str = ""
    cluster: str = ""
    last_txid: int = 0
    released_txid: int = 0
    committed: int = 0
    tuples: int = 0
    attempts: int = 0
    failed_attempts: int = 0
    waves: int = 0
    commit_groups: int = 0
    window: dict[str, int] = field(default_factory=dict)
    transactions_per_s: float = 0.0
    tuples_per_s: float = 0.0
    lag_s: float = 0.0
    fraction: float | None = None
    latency_s: Spread = Spread()
    commit_s: Spread = Spread()
    wave_s: Spread = Spread()
    components: dict[str, ComponentFigures] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    last_failure: LastFailure | None = None
    server_away_count: int = 0
    server_away_s: float = 0.0
    quarantined: int = 0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class PulseSample:
    """A few figures of one second, for lines in a dashboard, as `RunFigures` has them; durations are medians."""

    at: float = 0.0
    last_txid: int = 0
    transactions_per_s: float = 0.0
    tuples_per_s: float = 0.0
    lag_s: float = 0.0
    processing: int = 0
    processed: int = 0
    committing: int = 0
    latency_s: float = 0.0
    commit_s: float = 0.0
    wave_s: float = 0.0
    failed_attempts: int = 0


@dataclass(frozen=True, slots=True)
class RunPulse:
    """What a topology's last run has reported.

    Attributes:
        seen_at: when it last wrote, seconds since the epoch by its own clock.
        samples: of the last minutes, ascending; of earlier runs too, if they are as recent.
        is_gone: its process ran where the reader runs, and is not there any more.
    """

    run: RunIdentity
    now: RunFigures
    seen_at: float
    samples: tuple[PulseSample, ...] = ()
    is_gone: bool = False

    def standing(self, *, now: float, connected: int) -> Standing:
        """Returns what to conclude at `now`, in seconds since the epoch, while `connected` runs have a connection."""
        if self.now.state.has_ended:
            return Standing.ENDED
        if connected:
            return Standing.RUNNING
        return Standing.SILENT if self.is_gone or now - self.seen_at >= SILENT_AFTER_S else Standing.RUNNING

    def to_dict(self) -> dict[str, Any]:
        return {"run": asdict(self.run), "now": asdict(self.now), "seen_at": self.seen_at}


def owners(pulse: RunPulse | None, fence: str) -> RunPulse | None:
    """Returns the pulse if it is that of the run with this fence, which owns the topology; None if an older run's."""
    return pulse if pulse is not None and pulse.run.fence == fence else None


def standing_of(pulse: RunPulse | None, *, now: float, connected: int) -> Standing:
    """Returns what to conclude about a topology's last run, with or without a pulse; see `RunPulse.standing`."""
    if pulse is None:
        return Standing.RUNNING if connected else Standing.UNTOLD
    return pulse.standing(now=now, connected=connected)


def to_json(value: RunIdentity | RunFigures | PulseSample) -> str:
    """Returns one of the values above as the text that is stored."""
    return json.dumps(asdict(value), ensure_ascii=False, separators=(",", ":"))


def pulse_of(stored: Mapping[str, str]) -> RunPulse | None:
    """Returns the pulse in the fields of its key, None if there is none.

    A field that a newer or older version has written differently, or somebody else has changed, counts as not reported.
    """
    if NOW_FIELD not in stored and RUN_FIELD not in stored:
        return None
    try:
        seen_at = float(stored.get(SEEN_FIELD, "0"))
    except ValueError:
        seen_at = 0.0
    samples = [_read(PulseSample, text) for name, text in stored.items() if name.startswith(SAMPLE_PREFIX)]
    latest = max((sample.at for sample in samples), default=0.0)
    recent = sorted((s for s in samples if s.at > latest - SAMPLES_KEPT), key=lambda sample: sample.at)
    return RunPulse(_identity(stored.get(RUN_FIELD, "")), _figures(stored.get(NOW_FIELD, "")), seen_at, tuple(recent))


def _identity(text: str) -> RunIdentity:
    return _read(RunIdentity, text)


def _figures(text: str) -> RunFigures:
    data = _data(text)
    known = {name: value for name, value in data.items() if name in _names(RunFigures)}
    try:
        for name in ("latency_s", "commit_s", "wave_s"):
            known[name] = Spread(**known.get(name, {}))
        known["components"] = {name: ComponentFigures(**done) for name, done in known.get("components", {}).items()}
        failure = known.get("last_failure")
        known["last_failure"] = None if failure is None else LastFailure(**failure)
        return RunFigures(**known | {"state": RunState(known.get("state", RunState.STARTING))})
    except (TypeError, ValueError, AttributeError):
        return RunFigures()


def _read(kind: type[Value], text: str) -> Value:
    known = {name: value for name, value in _data(text).items() if name in _names(kind)}
    return kind(**known)


def _names(kind: type[Any]) -> set[str]:
    return {entry.name for entry in fields(kind)}


def _data(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text) if text else {}
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
