"""A run's reports about itself, as values: who runs it, its state, its speed, and its start. Pure.

The driver writes them about once a second, apart from the commits; see `redis_admin/pulse`. They are for people and
dashboards, and no decision depends on them. Commit positions, receipts and metadata are exact: commits carry them.
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
"""A run that has written nothing for this long is probably gone: it was killed, or cannot reach the server."""
SAMPLES_KEPT = 600
"""Samples in the ring: the last ten minutes at one a second."""

RUN_FIELD, NOW_FIELD, SEEN_FIELD, SAMPLE_PREFIX = "run", "now", "seen", "sample."
STORIES_FROM_FIELD = "stories_from"
"""Field in which the server keeps the lowest txid that may have a story."""


class RunState(StrEnum):
    """The state that a run reports."""

    STARTING = "starting"
    """It owns the topology, but has not begun a wave, nor found that there is nothing to do."""
    RUNNING = "running"
    DRAINING = "draining"
    """It cuts nothing more, commits the transactions in flight, and ends."""
    WAITING = "waiting for the server"
    """Before it continues, its commits have to become as durable as it has asked."""
    WITHOUT_EXECUTORS = "waiting for executors"
    """Spark runs none of its tasks; the time counts against no batch."""
    DONE = "done"
    STOPPED = "stopped"
    """It ended before its input did: it was drained, or interrupted."""
    FAILED = "failed"

    @property
    def has_ended(self) -> bool:
        """Whether the run writes nothing more."""
        return self in (RunState.DONE, RunState.STOPPED, RunState.FAILED)


class Standing(StrEnum):
    """A reader's conclusion about a topology's last run."""

    RUNNING = "running"
    ENDED = "ended"
    SILENT = "silent"
    """It has not reported its end, but its process is gone or it has stopped writing."""
    UNKNOWN = "unknown"
    """No run has ever written a pulse, and none is connected."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Who runs a topology, where, and with which versions; written once, after the takeover.

    Attributes:
        fence: the run's fence; if the control key has another one, another run has taken over since.
        started_at: seconds since the epoch.
        versions: the versions of python, pyspark and txbatch.
        history: how many transactions keep their receipt, metadata and story.
        pid_space: the process namespace in which `pid` is valid; see `state.redis_client.presence`.
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
    """The distribution of some recent durations, in seconds: half, 95 %, 99 % and all of them are at most this long."""

    count: int = 0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    maximum: float = 0.0


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """A component's work in a run; repeated work counts again.

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
    """The attempt that failed last; `at` is in seconds since the epoch, for `kind` see `RunFigures.failures`.

    If `last_txid` is above `txid`, a wave crashed: one transaction from `txid` to `last_txid` failed, unknown which.
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
        at: when the figures were taken, seconds since the epoch; a driver that is busy, or waits, does not renew them.
        state: the run's state.
        error: first line of the error that ended it, "" if there is none.
        cluster: what is wrong with Spark's cluster, in one line; "" if all is well.
        last_txid, released_txid: last txid committed, over all runs, and released upstream.
        committed, tuples: transactions this run has committed, and tuples its spout emitted in them.
        attempts, failed_attempts, waves, commit_groups: their numbers so far.
        window: state -> attempts in flight: waiting, processing, processed, committing.
        transactions_per_s, tuples_per_s: committed over the last ten seconds.
        lag_s: seconds since the last commit while transactions are in flight; 0 if none is.
        fraction: fraction of the input that is cut, None if its size is unknown.
        latency_s: recent times from the first cut of a transaction to its commit.
        commit_s: recent times that the server took for a commit.
        wave_s: recent times to process a wave.
        components: component id -> its work.
        failures: kind -> number of attempts that failed with it; "lower failed" counts those dropped because a lower
            attempt had failed.
        last_failure: the last failure, None if there was none.
        server_away_count, server_away_s: how often the server did not answer, and for how long in total.
        quarantined, dead_letters: batches that this run has set aside, and tuples refused in its committed batches.
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
    """A few of the `RunFigures` for one second, for charts in a dashboard; durations are medians."""

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
    """The reports of a topology's last run.

    Attributes:
        seen_at: when the run last wrote, in seconds since the epoch by its own clock.
        samples: the samples of the last minutes, ascending; also of earlier runs, if they are as recent.
        is_gone: the run's process was on the reader's machine, and no longer exists.
    """

    run: RunIdentity
    now: RunFigures
    seen_at: float
    samples: tuple[PulseSample, ...] = ()
    is_gone: bool = False

    def standing(self, *, now: float, connected: int) -> Standing:
        """Returns the conclusion at `now`, in seconds since the epoch, while `connected` runs have a connection."""
        if self.now.state.has_ended:
            return Standing.ENDED
        if connected:
            return Standing.RUNNING
        return Standing.SILENT if self.is_gone or now - self.seen_at >= SILENT_AFTER_S else Standing.RUNNING

    def to_dict(self) -> dict[str, Any]:
        return {"run": asdict(self.run), "now": asdict(self.now), "seen_at": self.seen_at}


def owners(pulse: RunPulse | None, fence: str) -> RunPulse | None:
    """Returns the pulse if it is from the topology's owner, the run with this fence; None if from an older run."""
    return pulse if pulse is not None and pulse.run.fence == fence else None


def standing_of(pulse: RunPulse | None, *, now: float, connected: int) -> Standing:
    """Returns the conclusion about a topology's last run, with or without a pulse; see `RunPulse.standing`."""
    if pulse is None:
        return Standing.RUNNING if connected else Standing.UNKNOWN
    return pulse.standing(now=now, connected=connected)


def to_json(value: RunIdentity | RunFigures | PulseSample) -> str:
    """Returns one of the values above as stored text."""
    return json.dumps(asdict(value), ensure_ascii=False, separators=(",", ":"))


def pulse_of(stored: Mapping[str, str]) -> RunPulse | None:
    """Returns the pulse in the fields of its key, None if there is none.

    A field that another version has written differently, or somebody else has changed, counts as missing.
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
