"""The transactional spout: a coordinator that cuts the input, emitters that read what was cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
from state.attempt import TransactionAttempt


class ComparedInput:
    """The methods by which a spout's coordinator says what it has read, so that a changed input is noticed."""

    def compare(self, former: FormerInput) -> InputChange | None:
        """Compares this input with what earlier runs have read; called once, before `resume`, if they have read any.

        If the fingerprint has changed, the result decides whether the run may continue on this input: the user has to
        accept what would be skipped, would be read again, or has changed (``--adopt=…``). If it has not, only what has
        changed or is impossible counts.

        Returns:
            The differences. None, the default, means that the spout cannot compare: then another input must be
            accepted unchecked, and the same one is accepted as it is.
        """
        return None

    def is_empty(self) -> bool:
        """Returns whether the input certainly has nothing to read; asked once, before `resume`, if nothing was stored.

        Such a run is done before Spark starts. By default, and if that takes longer than a look, it is False.
        """
        return False

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        """Returns name -> what to remember of a transaction's input after its metadata is forgotten; empty by default.

        Called for every transaction that is cut, and at start for those that are stored and not committed. The last
        note of each name is stored with the commit and kept; `run_so_far` and what `compare` is given hold them all.

        Args:
            metadata: of the transaction.
        """
        return {}

    def position(self, metadata: Any) -> Any:
        """Returns the part of a transaction's metadata that says what was read; called by ``txbatch verify --refold``.

        Two transactions that have read the same, up to the same place, return equal values. Override it if metadata
        holds more than that, such as the time of a file.

        Args:
            metadata: of the transaction.
        """
        return metadata


class MeasuredInput:
    """The methods by which a spout's coordinator says how much it has read, and how much a batch reads."""

    def progress(self) -> float | None:
        """Returns the part of the input that is cut, from 0 to 1, for the progress bar; None if it is unknown."""
        return None

    def estimated_bytes(self, metadata: Any) -> int:
        """Returns about how many bytes of input a batch reads, to keep waves within memory; 0 if unknown."""
        return 0


class PausableInput:
    """The methods that notify a spout's coordinator of a pause."""

    def deactivate(self) -> None:
        """Called when a pause begins: nothing new is cut until `activate`, while what is in flight commits.

        Follows `Coordinator.deactivate`, on the thread of the run. Not called for a pause that ends before the run
        has noticed it.
        """

    def activate(self) -> None:
        """Called when a pause ends, before any other method; not called at the start."""


class SpoutCoordinator(ComparedInput, MeasuredInput, PausableInput, ABC):
    """Decides what belongs to each transaction. One lives in the driver; its methods are never called in parallel.

    Most spouts need no more than the methods here. The bases hold what else a spout can say of its input.

    Attributes:
        run_so_far: how far the topology is, and what earlier runs have noted. The run sets it before it calls
            `resume`, and before each method that depends on it.

    Source: backtype.storm.transactional.ITransactionalSpout.Coordinator.
    Differs from Storm: there a coordinator must keep count itself, which it cannot do across restarts.
    """

    run_so_far: RunSoFar = RunSoFar()

    def resume(self) -> None:
        """Called once, before transactions are cut; `run_so_far` says where earlier runs stopped cutting.

        Transactions up to ``run_so_far.last_txid`` are replayed from what is stored; new ones begin after it.
        """

    @abstractmethod
    def is_ready(self) -> bool:
        """Returns whether another transaction may be cut now. Called only for txids never cut before.

        `run_so_far` says how far the run is: ``return self.run_so_far.last_txid < 10`` cuts ten, even after a restart.

        Return False once the input has ended: `is_exhausted` is called only when nothing is in flight, and does not
        stop cutting.
        """

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """Cuts transaction `txid`, once.

        What it returns is stored before anything is emitted, and passed to every attempt at the txid.

        Args:
            txid: of the transaction.
            previous: metadata of ``txid - 1``, None for the first.

        Returns:
            Plain data (None, bool, int, float, str, bytes, list, tuple, dict) that describes the batch well enough to
            read exactly the same input again.
        """

    def is_exhausted(self) -> bool:
        """Returns whether the input has ended: a run that is idle and exhausted is done."""
        return False

    def is_finite(self) -> bool:
        """Returns whether the input ends by itself, so that a drain before its end interrupts the job.

        By default it is True if the class overrides `is_exhausted`.
        """
        return type(self).is_exhausted is not SpoutCoordinator.is_exhausted

    def close(self) -> None:
        """Called once, when the run ends."""


class SpoutEmitter(ABC):
    """Emits this task's share of a batch (executor; one per task and wave).

    Source: backtype.storm.transactional.ITransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emits the share of task ``context.task_index`` of ``context.task_count`` of the batch.

        Every attempt at a txid receives the same metadata and must emit the same tuples in the same order.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, after the last batch."""


class SpoutSpec(IComponent):
    """What the specs of all kinds of spout share.

    The object is made on the driver and shipped, so it must pickle; its methods make the live objects. A class that is
    a coordinator too needs no `get_coordinator`: each run then asks a copy of the object.
    """

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        """Makes the coordinator (driver, once a run)."""
        return copy(self)  # type: ignore[return-value] # the builder has refused a spec that is none

    def find_input(self) -> None:
        """Looks whether there is any input (driver, first of all in a run). The default trusts that there is.

        Whatever can be known only by asking the input waits for this call: a topology is also defined where its input
        is not, by tests, by ``txbatch plan`` and by type checkers.

        Raises:
            TopologyError: it is not there, so nothing has to be started.
        """

    def fingerprint(self) -> str:
        """Returns one readable line that changes with the input; called once a run, on the driver.

        It is stored with the first write. A later start with another line is refused unless the user accepts what
        `SpoutCoordinator.compare` reports. The default names the class, which says nothing about the input: override
        it.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"


def lacks_coordinator(spec: SpoutSpec) -> bool:
    """Returns whether a spec neither makes a coordinator nor is one."""
    return type(spec).get_coordinator is SpoutSpec.get_coordinator and not isinstance(spec, SpoutCoordinator)


class ITransactionalSpout(SpoutSpec):
    """The spec of a spout whose batches are cut by one coordinator.

    Source: backtype.storm.transactional.ITransactionalSpout.
    """

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        """Returns the indexes of the tasks that have a share of a batch; the emitters of the others are not called.

        Called where emitters run, on a copy of the shipped spout, for every attempt. It is a function of its arguments,
        and leaves the metadata as it is. The default returns all tasks. With many tasks and small transactions,
        tasks that have nothing to emit are most of what a spout costs.

        Args:
            txid: of the transaction.
            metadata: of the transaction.
            task_count: how many tasks the spout has.
        """
        return range(task_count)

    def describe(self, metadata: Any) -> Sequence[str]:
        """Returns what a transaction read, in the words of the input, a line each.

        Called by ``txbatch dry-run --txid``, and by ``inspect`` and ``quarantine show`` with ``--factory``, in their
        process. It is a function of the metadata alone, which opens neither files nor connections. Nothing depends on
        it, and it is not stored. The default has no words: the metadata itself is shown.

        Args:
            metadata: of the transaction, as the coordinator made it.
        """
        return ()
