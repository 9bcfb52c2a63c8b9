"""The transactional spout: a coordinator that cuts the input, and emitters that read it."""

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
    """The methods by which a spout's coordinator describes the input read, so that a changed input is noticed."""

    def compare(self, former: FormerInput) -> InputChange | None:
        """Compares this input with the input of earlier runs; called once, before `resume`, if they have read any.

        If the fingerprint has changed, the result decides whether the run may continue on this input: the user has to
        accept parts that would be skipped, would be read again, or have changed (``--adopt=…``). With the same
        fingerprint, only `changed` and `impossible` count.

        Returns:
            The differences. None, the default, means that the spout cannot compare: then the user must accept another
            input unchecked, and an input with the same fingerprint is accepted without a check.
        """
        return None

    def is_empty(self) -> bool:
        """Returns whether the input is certainly empty; called once, before `resume`, if nothing was stored.

        Such a run is done before Spark starts. The default is False; return False too if finding out would take long.
        """
        return False

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        """Returns name -> note, to keep about a transaction's input after its metadata is forgotten; empty by default.

        Called for every transaction that is cut, and at start for those that are stored but not committed. The last
        note of each name is stored with the commit and kept; `run_so_far` and the argument of `compare` have them all.

        Args:
            metadata: the transaction's metadata.
        """
        return {}

    def position(self, metadata: Any) -> Any:
        """Returns the part of a transaction's metadata that describes the input; called by ``txbatch verify --refold``.

        It must be equal for two transactions with the same input, up to the same position. Override it if the metadata
        has further facts, such as the time of a file.

        Args:
            metadata: the transaction's metadata.
        """
        return metadata


class MeasuredInput:
    """The methods by which a spout's coordinator estimates its progress and the size of a batch."""

    def progress(self) -> float | None:
        """Returns the fraction of the input that is cut, from 0 to 1, for the progress bar; None if unknown."""
        return None

    def estimated_bytes(self, metadata: Any) -> int:
        """Returns an estimate of a batch's input in bytes, to keep waves within memory; 0 if unknown."""
        return 0


class PausableInput:
    """The methods that notify a spout's coordinator of a pause."""

    def deactivate(self) -> None:
        """Called when a pause begins: nothing new is cut until `activate`, while transactions in flight commit.

        Follows `Coordinator.deactivate`, on the thread of the run. Not called for a pause that ends before the run
        has noticed it.
        """

    def activate(self) -> None:
        """Called when a pause ends, before any other method; not called at the start."""


class SpoutCoordinator(ComparedInput, MeasuredInput, PausableInput, ABC):
    """Cuts the input into transactions. One lives in the driver; its methods are never called in parallel.

    Most spouts need only the methods here. The base classes have further, optional ones about the input.

    Attributes:
        run_so_far: how far the topology is, with the notes of earlier runs. The run sets it before it calls `resume`,
            and before each method that depends on it.

    Source: backtype.storm.transactional.ITransactionalSpout.Coordinator.
    Differs from Storm: there a coordinator must keep count itself, which it cannot do across restarts.
    """

    run_so_far: RunSoFar = RunSoFar()

    def resume(self) -> None:
        """Called once, before transactions are cut; `run_so_far` shows where earlier runs stopped cutting.

        Transactions up to ``run_so_far.last_txid`` are replayed from stored metadata; new ones begin after it.
        """

    @abstractmethod
    def is_ready(self) -> bool:
        """Returns whether another transaction may be cut now. Called only for txids never cut before.

        `run_so_far` shows how far the run is: ``return self.run_so_far.last_txid < 10`` cuts ten, even after a restart.

        Return False once the input has ended: `is_exhausted` is called only when nothing is in flight, and does not
        stop cutting.
        """

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """Cuts transaction `txid`, once.

        The returned metadata is stored before anything is emitted, and passed to every attempt at the txid.

        Args:
            txid: the transaction's txid.
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
    """The base of the specs of all kinds of spout.

    The object is made on the driver and shipped, so it must pickle; its methods make the live objects. A class that is
    a coordinator too needs no `get_coordinator`: each run then asks a copy of the object.
    """

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        """Makes the coordinator (driver, once a run)."""
        return copy(self)  # type: ignore[return-value] # the builder has refused a spec that is none

    def find_input(self) -> None:
        """Checks that the input exists (driver, first of all in a run). By default does nothing.

        Leave all access to the input to this call: a topology is also defined where its input does not exist, by tests,
        by ``txbatch plan`` and by type checkers.

        Raises:
            TopologyError: the input does not exist, so nothing has to be started.
        """

    def fingerprint(self) -> str:
        """Returns one readable line that changes with the input; called once a run, on the driver.

        It is stored with the first write. A later start with another line is refused unless the user accepts the
        changes that `SpoutCoordinator.compare` reports. The default names only the class, not the input: override it.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"


def lacks_coordinator(spec: SpoutSpec) -> bool:
    """Returns whether a spec neither makes a coordinator nor is a coordinator itself."""
    return type(spec).get_coordinator is SpoutSpec.get_coordinator and not isinstance(spec, SpoutCoordinator)


class ITransactionalSpout(SpoutSpec):
    """The spec of a spout whose batches are cut by one coordinator.

    Source: backtype.storm.transactional.ITransactionalSpout.
    """

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        """Returns the indexes of the tasks that have a share of a batch; the emitters of other tasks are not called.

        Called where emitters run, on a copy of the shipped spout, for every attempt. It must be a function of its
        arguments, and leave the metadata unchanged. The default returns all tasks. With many tasks and small
        transactions, tasks without a share are most of a spout's cost.

        Args:
            txid: the transaction's txid.
            metadata: the transaction's metadata.
            task_count: how many tasks the spout has.
        """
        return range(task_count)

    def describe(self, metadata: Any) -> Sequence[str]:
        """Describes the input that a transaction read, in lines of text.

        Called by ``txbatch dry-run --txid``, and by ``inspect`` and ``quarantine show`` with ``--factory``, in their
        process. It must be a function of the metadata alone, without opening files or connections. Nothing depends on
        it, and it is not stored. By default there are no lines, and the metadata itself is shown.

        Args:
            metadata: the transaction's metadata, from the coordinator.
        """
        return ()
