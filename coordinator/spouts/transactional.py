"""The transactional spout: a coordinator that cuts the input, emitters that read what was cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.run_so_far import KnowsRunSoFar
from state.attempt import TransactionAttempt


class SpoutCoordinator(KnowsRunSoFar, ABC):
    """Decides what belongs to each transaction. One lives in the driver; nothing here runs in parallel.

    Source: backtype.storm.transactional.ITransactionalSpout.Coordinator.
    """

    def resume(self, last_txid: int, last: Any) -> None:
        """Tells where earlier runs stopped cutting; called once, before anything else is asked.

        Args:
            last_txid: the highest txid that was cut, 0 if there is none.
            last: metadata of the highest txid that is stored, committed or not; None if there is none.
                Transactions up to it are replayed from what is stored, new ones begin after it.
        """

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether a further transaction may be cut now. Asked only for txids never seen before.

        `run_so_far` tells how far the run is: ``return self.run_so_far.last_txid < 10`` cuts ten, also after a restart.

        Say no once the input has ended: `is_exhausted` is asked when nothing is under way, and cuts nothing off.
        """

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        """Cuts transaction `txid`, once.

        What it returns is stored before anything is emitted, and given to every attempt at the txid.

        Args:
            txid: the transaction.
            previous: metadata of ``txid - 1``, None for the first.

        Returns:
            Plain data (None, bool, int, float, str, bytes, list, tuple, dict) that describes the batch well
            enough to read exactly the same again.
        """

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        """What to remember of a transaction's input once its metadata is forgotten, by name; nothing by default.

        Called for every transaction that is cut, and at start for those that are stored and not committed. The last
        note of each name is stored with the commit and stays; `compare` is given them all.

        Args:
            metadata: of the transaction.
        """
        return {}

    def compare(self, former: FormerInput) -> InputChange | None:
        """Compares this input with what earlier runs have read; called once, before `resume`, if they have read any.

        With another fingerprint it decides whether the run may continue on this input: what would be skipped, read
        again, or is changed has to be named by the user (``--adopt=…``). With the same one only what is changed or
        impossible counts.

        Returns:
            What is different; None, the default, if the spout cannot tell: then another input is only taken
            unchecked, and the same one as it is.
        """
        return None

    def recall(self, notes: Mapping[str, Any]) -> None:
        """Hands over everything earlier runs have noted, see `notes`; called once, before `resume`.

        Args:
            notes: name -> the last note of that name, of transactions that are not committed too.
        """

    def is_exhausted(self, last: Any) -> bool:
        """Whether the input has ended: a run that is idle and exhausted is done.

        Args:
            last: metadata of the last transaction that was cut, None before the first.
        """
        return False

    def is_finite(self) -> bool:
        """Whether the input ends by itself, so that a drain before its end interrupts the job.

        The default goes by `is_exhausted`: who overrides it knows of an end.
        """
        return type(self).is_exhausted is not SpoutCoordinator.is_exhausted

    def progress(self, last: Any) -> float | None:
        """Which part of the input is cut, from 0 to 1, for the progress bar; None if that is unknown.

        Args:
            last: metadata of the last transaction that was cut, None before the first.
        """
        return None

    def estimated_bytes(self, metadata: Any) -> int:
        """About how many bytes of input a batch reads, to keep waves within memory; 0 if unknown."""
        return 0

    def deactivate(self) -> None:
        """Tells that nothing new is cut until `activate`; what is under way commits meanwhile.

        Follows `Coordinator.deactivate`, on the thread of the run. A pause that is over before the run has
        noticed it is not told.
        """

    def activate(self) -> None:
        """Tells that a pause is over, before the first question after it; not called at the start."""

    def close(self) -> None:
        """Called once, when the run ends."""


class SpoutEmitter(ABC):
    """Emits this task's share of a batch (executor; one per task and wave).

    Source: backtype.storm.transactional.ITransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emits the share of task ``context.task_index`` of ``context.task_count`` of the batch.

        Every attempt at a txid is given the same metadata and emits the same tuples in the same order.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, after the last batch."""


class ITransactionalSpout(IComponent):
    """The spec of a spout whose batches are cut by one coordinator.

    The object is made on the driver and shipped, so it pickles; what lives is made by the two methods.

    Source: backtype.storm.transactional.ITransactionalSpout.
    """

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        """Makes the coordinator (driver, once a run)."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def fingerprint(self) -> str:
        """One readable line that changes when the input is another one.

        It is stored with the first write; a later start with another line is refused unless the user has accepted
        what `SpoutCoordinator.compare` tells. Asked once a run, on the driver. The default names the class, which
        says nothing of the input: override it.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"
