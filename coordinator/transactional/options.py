"""The options of a run, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from coordinator.option_checks import checked, count, fraction, one_of, refuse_wrong_options, seconds
from state.commits.commit import COMMIT_OPERATIONS_LIMIT, HISTORY_KEPT
from state.errors import TopologyError
from state.records.durability import Durability, DurabilityLevel

HISTORY_MAX = 1_000_000
EXECUTORS_TIMEOUT_S = 300.0
"""How long a run waits for executors unless its options say otherwise."""
HANG_REPORT_S = 2.0
"""How much later than its timeout a wave is cancelled on Spark, at least: Spark's workers interrupt user code that
hangs, and their report, which names the line, has to arrive first.
"""
ADOPT_WORDS = {
    "skip": "input that lies before the position and was never read stays unread",
    "again": "input that was read is read a second time",
    "changed": "input that was read and has changed or is gone stays counted as it was",
    "renamed": "a file that holds what was read under another name is the same file, and is not read again",
    "unchecked": "nothing is compared, for spouts that cannot compare",
}
"""The changes of the input that a user may accept, each with its meaning."""
POISON_WORDS = {
    "halt": "the run ends with the batch's error, and a new run starts at this batch",
    "quarantine": "its transaction is committed empty, and the batch is kept, to be republished",
}
"""What to do with a batch that fails on every attempt it is given."""


class EngineName(StrEnum):
    """The engine of a run."""

    SPARK = "spark"
    LOCAL = "local"
    """This process, without Spark and without Java; see `coordinator.engines.waves`."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The limits of a run, and the changes since earlier runs that it accepts.

    Attributes:
        max_spout_pending: most uncommitted transactions in flight. None leaves it to the engine: LocalCluster has 1, as
            Storm; Spark starts with 64, then adapts to `wave_target_s`, up to 2,048.
        wave_target_s: how long a wave should take, in seconds, if `max_spout_pending` is None: the number of
            transactions that share a Spark job grows while waves take less, and shrinks if they take more. Full waves
            may take twice as long if their fixed cost would otherwise exceed a tenth of their time.
        commit_group_max: most transactions of one atomic commit; 1 commits them one by one.
        commit_operations_max: most changes in a group of more than one transaction. The default blocks the server for
            0.1 to 0.5 s, depending on the size of its hashes; `commit_target_s` makes most groups smaller.
        commit_target_s: how long the call that commits a group may keep the server busy, in seconds: its other clients
            wait as long. The time of recent calls decides the size of groups; only a single transaction may take
            longer, and the log then names it. 0 or None sets no limit, and LocalCluster never has one.
        max_attempts: a txid that fails this often is poison. The batch may be to blame (user code raised, a record is
            bad, or it hung or lost its worker while alone in a wave), or something else (a count does not match, a
            state read was not answered); see `on_poison`.
        on_poison: what to do with poison. "halt" ends the run with the batch's error; an error that is not a
            `FailedException` then ends it at the first attempt, since the next run tries again. "quarantine" gives
            every batch `max_attempts` attempts, then commits its transaction empty and keeps the batch for ``txbatch
            quarantine``. A failure that is not the batch's fault halts either way.
        max_quarantined: most quarantined batches that the topology may have; poison beyond that halts.
        max_bad_fraction: the largest fraction of bad records among all records read, such as 0.01, checked from 100
            records on; the run ends before it commits the transaction that exceeds it. None sets no limit.
        retry_backoff_s: the pause before the third attempt at a txid, doubled before each further one; the second is
            made at once. None uses the engine's default: 0.2 on Spark, and 0 on LocalCluster, whose clock stands still.
        retry_backoff_max_s: the longest pause between two attempts.
        adopt: continue even if the input has changed since earlier runs. True accepts another input if everything read
            so far is unchanged and nothing would be skipped or read again. To accept more, name it: "skip", "again",
            "changed" and "renamed", separated by commas, or "unchecked".
        accept_state_changes: continue even if a state is no longer declared, is declared with other types, or holds
            data that the topology has no record of writing.
        durability: the confirmation that a commit needs before it is released upstream (spouts notified, streams
            trimmed, files removed, a micro-batch returned to Spark) and before the run reports that it is done.
            "memory": the server has answered. "fsync": the commit is on the server's disk. "replica": replicas have
            received it. "service": the server has answered, and its service promises that the answer lasts; txbatch
            does not check that. None is fsync for a run that destroys input, such as one that deletes files, and memory
            for any other; on LocalCluster it is memory for all.
        durability_replicas: how many replicas have to confirm, for durability "replica".
        early_commit: run committers that only write in the job that processes their wave: one job for both phases
            instead of two. Nothing is published earlier. A run uses two jobs if a committer reads state, has external
            effects, or has bolts downstream.
        pulse: write the run's progress about once a second, for `txbatch status`, `txbatch list` and `txbatch inspect`.
            It delays no commit, and a pulse that fails changes nothing.
        history: how many transactions keep their receipt, metadata and story, for `txbatch inspect`; 0 keeps none.
        executors_timeout_s: how long the run waits for an executor while Spark runs none of its tasks; then it ends
            with an `EngineError`. A message timeout counts from a phase's first task, so this wait never counts against
            a batch.
        last_txid: the run ends once this transaction is committed, even if input is left; None runs to the end of the
            input. If it is committed already, the run changes nothing.
        slots: how many Spark tasks each stage of a wave has at most; a stage with more tasks runs several in each of
            them, one after the other. None takes the number of cores of a local master, or of a cluster if its settings
            give it (see `docs/spark.md`); otherwise every task is a Spark task of its own. The stored results do not
            depend on it.
        notifies_spout: notify the spout's committer; False for a run that repeats another one's work.
    """

    max_spout_pending: int | None = checked(None, count(), may_be_none=True)
    wave_target_s: float = checked(0.3, seconds(above_zero=True))
    commit_group_max: int = checked(1024, count())
    commit_operations_max: int = checked(150_000, count(most=COMMIT_OPERATIONS_LIMIT, why=", the server's limit"))
    commit_target_s: float | None = checked(0.1, seconds(), may_be_none=True)
    max_attempts: int = checked(5, count())
    on_poison: str = checked("halt", one_of(POISON_WORDS))
    max_quarantined: int = checked(10, count())
    max_bad_fraction: float | None = checked(None, fraction(), may_be_none=True)
    retry_backoff_s: float | None = checked(None, seconds(), may_be_none=True)
    retry_backoff_max_s: float = checked(30.0, seconds())
    adopt: bool | str = False
    accept_state_changes: bool = False
    durability: str | None = checked(None, one_of(dict.fromkeys(DurabilityLevel, "")), may_be_none=True)
    durability_replicas: int = checked(1, count())
    early_commit: bool = True
    pulse: bool = True
    history: int = checked(HISTORY_KEPT, count(0, HISTORY_MAX, ": it takes memory"))
    executors_timeout_s: float = checked(EXECUTORS_TIMEOUT_S, seconds(above_zero=True))
    last_txid: int | None = checked(None, count(), may_be_none=True)
    slots: int | None = checked(None, count(), may_be_none=True)
    notifies_spout: bool = True

    def __post_init__(self) -> None:
        refuse_wrong_options(self)
        adopted_words(self.adopt)

    def asked_durability(self, destruction: str = "") -> Durability:
        """Returns the durability to confirm: the user's choice, otherwise the server's disk if the run destroys input.

        Args:
            destruction: how the spout destroys its input, such as "done files are deleted"; "" if it does not, or once
                that is decided.
        """
        if self.durability is None and destruction and self.notifies_spout:
            return Durability(DurabilityLevel.FSYNC, because=destruction)
        return Durability(DurabilityLevel(self.durability or DurabilityLevel.MEMORY), self.durability_replicas)

    def or_window(self, window: int) -> RunOptions:
        """Returns these options, with the engine's window if the user has set none."""
        return self if self.max_spout_pending is not None else replace(self, max_spout_pending=window)

    @property
    def quarantines(self) -> bool:
        """Whether poison is quarantined."""
        return self.on_poison == "quarantine"

    def or_backoff(self, seconds: float) -> RunOptions:
        """Returns these options, with the engine's backoff if the user has set none."""
        return self if self.retry_backoff_s is not None else replace(self, retry_backoff_s=seconds)

    def pause_s(self, failure_count: int) -> float:
        """Returns how long to wait before the next attempt at a txid that has failed `failure_count` times."""
        if failure_count < 2:
            return 0.0
        doubled = 2.0 ** min(failure_count - 2, 60)
        return min(self.retry_backoff_max_s, (self.retry_backoff_s or 0.0) * doubled)


def adopted_words(adopt: bool | str) -> frozenset[str] | None:
    """Returns the words of `RunOptions.adopt`, empty for True, or None if another input is not accepted.

    Raises:
        TopologyError: a word is not one of `ADOPT_WORDS`.
    """
    if isinstance(adopt, bool):
        return frozenset() if adopt else None
    words = frozenset(word.strip() for word in adopt.split(",")) if isinstance(adopt, str) else frozenset({repr(adopt)})
    if not words <= ADOPT_WORDS.keys():
        known = "; ".join(f"{word}: {meaning}" for word, meaning in ADOPT_WORDS.items())
        raise TopologyError(
            f"option adopt is {adopt!r}; give True, or one or more of these words, separated by commas: {known}"
        )
    return words
