"""Every error txbatch raises on purpose, by its remedy.

    TransactionError
    ├── FailedException             replay this attempt (bolts raise it too)
    │   └── StaleReadError          the reader was overtaken: its attempt is void
    ├── TopologyError               fix the wiring; nothing was started
    ├── SourceError                 the input is missing, has changed or cannot be read
    │   ├── BadInputError           a record of it is bad: fix it, skip it, or quarantine its batch
    │   └── NotRepublishableError      a quarantined batch can no longer be read: restore the input
    ├── UserCodeError               a bolt or spout raised: fix it, then run again
    ├── ReplayLimitError            one txid failed too often: look at the reason
    ├── QuarantineFullError         too many batches are quarantined: look at them first
    ├── WaveCrashError              a plain topology's waves crash: look at the reason
    ├── TransactionTooLargeError    cut smaller transactions
    ├── FencedError                 a newer run owns the topology, or it was dropped: do not restart
    ├── StateError                  Redis, or what it holds, stops the job
    │   ├── StateRefusedError       wrong server, wrong type, foreign or older state
    │   ├── StateUnreachableError   no answer: start the server or check the address
    │   └── NotDurableError         committed, but not as durable as asked: fix disk or replica, run again
    ├── EngineError                 Spark is gone or cannot work: fix that, run again
    └── ProtocolError               a bug in txbatch: report it

`Interruption` stands apart: a signal raises it, not the program.

Errors travel from executors to the driver, so each one pickles: every argument goes to
``super().__init__``, and ``__str__`` builds the text.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from state.printable import counted
from state.troubles import Trouble


class TransactionError(Exception):
    """Root of all errors txbatch raises on purpose.

    Attributes:
        trouble: the entry of docs/troubleshooting.md that explains it: its class's, unless the raising code has set a
            closer one. It is pickled with the error.
    """

    trouble: Trouble = Trouble.BUG

    def about(self, trouble: Trouble) -> Self:
        """Sets the explaining `trouble` and returns this error; called where it is raised."""
        self.trouble = trouble
        return self


class FailedException(TransactionError):  # noqa: N818 - Storm's name
    """Raised by a bolt or spout to have the current attempt replayed.

    The whole transaction is processed again with a new attempt id; lower txids are untouched. At
    the attempt limit the run stops with `ReplayLimitError`, or quarantines the batch.

    Source: backtype.storm.topology.FailedException.
    """

    trouble = Trouble.FAILED


class StaleReadError(FailedException):
    """A committer read state at another txid than the one from which its group started.

    Only a task whose attempt was given up can get this; nothing it does is published.
    """

    trouble = Trouble.STALE_READ

    def __init__(self, state_key: str, expected_txid: int, found_txid: int) -> None:
        super().__init__(state_key, expected_txid, found_txid)
        self.state_key, self.expected_txid, self.found_txid = state_key, expected_txid, found_txid

    def __str__(self) -> str:
        return (
            f"state {self.state_key!r} is at txid {self.found_txid}, expected {self.expected_txid}; "
            "this attempt was overtaken and is replayed"
        )


class TopologyError(TransactionError):
    """The topology or its parameters are wrong; nothing was started and nothing was written."""

    trouble = Trouble.TOPOLOGY


class SourceError(TransactionError):
    """The input is missing, has changed since it was cut into transactions, or cannot be read."""

    trouble = Trouble.INPUT


class BadInputError(SourceError):
    """A record of the input is bad, while everything else can be read."""

    trouble = Trouble.BAD_RECORD


class NotRepublishableError(SourceError):
    """The spout cannot emit the same quarantined batch again: its data is gone, or has other bounds now."""

    trouble = Trouble.NOT_REPUBLISHABLE

    def __init__(self, txid: int, reason: str) -> None:
        super().__init__(txid, reason)
        self.txid, self.reason = txid, reason

    def __str__(self) -> str:
        return (
            f"quarantined txid {self.txid} cannot be republished: {self.reason}; its record is kept: restore that part "
            "of the input, or drop the record"
        )


class UserCodeError(TransactionError):
    """User code raised something that is not a `FailedException`.

    Raised on the driver only: tasks report a `Failure`. Lower txids are committed, nothing of this one is.

    Args:
        component_id: the component whose code raised.
        traceback_text: the traceback from where the code ran, usually an executor.
        task_index: the task of that component, from 0.
        attempt: the attempt, or the batch of a sub-topology; empty if there is neither.
        tuple_text: the tuple that was being executed, if any.
        method: the method of a spout's coordinator that the driver called; empty for other code.
    """

    trouble = Trouble.USER_CODE

    def __init__(
        self,
        *,
        component_id: str,
        traceback_text: str,
        task_index: int = 0,
        attempt: str = "",
        tuple_text: str = "",
        method: str = "",
    ) -> None:
        super().__init__(component_id, task_index, attempt, tuple_text, traceback_text, method)
        self.component_id, self.task_index, self.attempt = component_id, task_index, attempt
        self.tuple_text, self.traceback_text, self.method = tuple_text, traceback_text, method

    def __reduce__(self) -> tuple[Any, ...]:
        made_by = partial(type(self), component_id=self.component_id, traceback_text=self.traceback_text)
        return made_by, (), self.__dict__

    def __str__(self) -> str:
        if self.method:
            return f"{self.method} of component {self.component_id!r} failed:\n{self.traceback_text.rstrip()}"
        where = f"component {self.component_id!r}, task {self.task_index}"
        where += f", attempt {self.attempt}" if self.attempt else ""
        during = f", at tuple {self.tuple_text}" if self.tuple_text else ""
        return f"{where}{during} raised:\n{self.traceback_text.rstrip()}"


class ReplayLimitError(TransactionError):
    """One txid failed on every attempt it was given."""

    trouble = Trouble.REPLAY_LIMIT

    def __init__(self, txid: int, attempt_count: int, last_reason: str) -> None:
        super().__init__(txid, attempt_count, last_reason)
        self.txid, self.attempt_count, self.last_reason = txid, attempt_count, last_reason

    def __str__(self) -> str:
        return (
            f"txid {self.txid} failed {counted(self.attempt_count, 'time')} and is not tried again in this run; "
            f"last reason: {self.last_reason}; lower txids are committed, and a new run starts at this one"
        )


class QuarantineFullError(TransactionError):
    """A batch is poison, and the topology has reached its limit of quarantined batches."""

    trouble = Trouble.QUARANTINE_FULL

    def __init__(self, topology_id: str, txid: int, count: int, reason: str) -> None:
        super().__init__(topology_id, txid, count, reason)
        self.topology_id, self.txid, self.count, self.reason = topology_id, txid, count, reason

    def __str__(self) -> str:
        return (
            f"topology {self.topology_id!r} has quarantined as many batches as it may ({self.count:,}); republish or "
            f"drop some; txid {self.txid} is poison too ({self.reason}), and lower txids are committed; see `txbatch "
            f"quarantine list {self.topology_id}`, or raise --max-quarantined (in Python RunOptions.max_quarantined)"
        )


class WaveCrashError(TransactionError):
    """Waves of a plain topology kept crashing, even with one tuple each."""

    trouble = Trouble.WAVE_CRASH

    def __init__(self, crash_count: int, last_reason: str) -> None:
        super().__init__(crash_count, last_reason)
        self.crash_count, self.last_reason = crash_count, last_reason

    def __str__(self) -> str:
        return (
            f"{counted(self.crash_count, 'wave')} of one tuple crashed in a row, and this run tries no more; last "
            f"reason: {self.last_reason}; look for a tuple that ends its worker, or a cluster that cannot run anything"
        )


class TransactionTooLargeError(TransactionError):
    """One transaction makes more changes than one atomic commit may."""

    trouble = Trouble.TRANSACTION_TOO_LARGE

    def __init__(self, txid: int, operation_count: int, operation_limit: int) -> None:
        super().__init__(txid, operation_count, operation_limit)
        self.txid, self.operation_count, self.operation_limit = txid, operation_count, operation_limit

    def __str__(self) -> str:
        return (
            f"txid {self.txid} makes {counted(self.operation_count, 'change')}, more than one atomic commit takes "
            f"({self.operation_limit:,}); cut smaller transactions"
        )


class FencedError(TransactionError):
    """A newer coordinator took over this topology, or it was dropped; this one may no longer write.

    Args:
        topology_id: the topology.
        was_dropped: it was dropped, or replaced by an import.
        by: where the newer coordinator runs, if known.
    """

    trouble = Trouble.FENCED

    def __init__(self, topology_id: str, was_dropped: bool = False, by: str = "") -> None:
        super().__init__(topology_id, was_dropped, by)
        self.topology_id, self.was_dropped, self.by = topology_id, was_dropped, by
        self.trouble = Trouble.DROPPED if was_dropped else Trouble.FENCED

    def __str__(self) -> str:
        if self.was_dropped:
            return (
                f"topology {self.topology_id!r} was dropped during this run, or replaced by an import, so this run "
                f"stops; `txbatch status {self.topology_id}` shows what a new run would continue from"
            )
        newer = f"a newer coordinator {self.by}".rstrip()
        return (
            f"topology {self.topology_id!r} was taken over by {newer}, so this run stops; nothing is lost; do not "
            "restart it"
        )


class StateError(TransactionError):
    """Redis, or the state it holds, stops the job."""

    trouble = Trouble.STATE_REFUSED


class StateRefusedError(StateError):
    """The server or its state cannot be used: too old, evicting, of the wrong type, foreign or rolled back."""


class StateUnreachableError(StateError):
    """The server gave no answer within the time allowed."""

    trouble = Trouble.SERVER_UNREACHABLE


class NotDurableError(StateError):
    """The server did not confirm in time that its commits were as durable as the run had asked.

    Unconfirmed commits were not released upstream; the next run releases them once they are confirmed.
    """

    trouble = Trouble.NOT_DURABLE

    def __init__(self, level: str, committed_txid: int, confirmed_txid: int, waited_s: float) -> None:
        super().__init__(level, committed_txid, confirmed_txid, waited_s)
        self.level, self.committed_txid, self.confirmed_txid = level, committed_txid, confirmed_txid
        self.waited_s = waited_s

    def __str__(self) -> str:
        cause = "a replica is away or lags" if self.level == "replica" else "its disk does not keep up"
        done = f"only up to txid {self.confirmed_txid:,}" if self.confirmed_txid else "none of it in this run"
        return (
            f"the run has committed up to txid {self.committed_txid:,}, but the server has confirmed {done} at "
            f"durability {self.level}; {cause}; fix that, or ask for less, and run again; nothing more was confirmed "
            f"for {self.waited_s:g} s; nothing is lost, and what was not confirmed was not released upstream"
        )


class EngineError(TransactionError):
    """Spark is gone or cannot work; neither the topology nor the state is at fault.

    Its Java process ended or does not answer, its master cannot be reached or has removed the application, a disk is
    full, or executors lack Python or a library. Nothing of an uncommitted transaction is visible.
    """

    trouble = Trouble.SPARK


class ProtocolError(TransactionError):
    """txbatch broke a rule of its own protocol: a bug in txbatch, not in user code."""

    trouble = Trouble.BUG


class Interruption(BaseException):
    """Raised by a signal handler into whatever is running.

    Not an `Exception`, so that nothing handles it by accident. txbatch treats any other exception from user code as the
    user's error, and lets this one pass.
    """
