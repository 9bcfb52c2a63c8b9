"""Cutting within a turn: every transaction of the window without a current attempt gets one.

A transaction that was cut before is issued again; for a new one, and for every attempt of an opaque one, the spout is
asked. Only the driver can ask it, so a round of cutting pauses at each `Cut` until the answer arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import BatchCut, Cut, Decision, NothingToCut, StoreMetadata
from coordinator.watching.run_observer import AttemptsIssued, TransactionCut
from state.attempt import TransactionAttempt
from state.errors import ProtocolError


class Cutting:
    """The rounds of cutting of a run, one a turn.

    Args:
        books: the run's books.
        failures: limit how far the window reaches.

    Attributes:
        is_under_way: the round waits for the spout's answer to the last `Cut`.
        has_rest: the round ended at a transaction whose next attempt must wait for a later time.
    """

    def __init__(self, books: RunBooks, failures: Failures) -> None:
        self._books, self._failures, self._is_opaque = books, failures, books.plan.is_opaque
        self._transactions = books.transactions
        self.is_under_way = False
        self.has_rest = False
        self._cut: dict[int, Any] = {}
        self._issued: list[TransactionAttempt] = []
        self._cuts: list[TransactionCut] = []

    def begin(self) -> Iterator[Decision]:
        """Begins the round of a turn."""
        self.is_under_way, self.has_rest = True, False
        yield from self._continue(self._transactions.currtx)

    def take_in(self, cut: BatchCut) -> Iterator[Decision]:
        """Takes the batch that the spout has cut, and continues the round."""
        assert self.is_under_way
        self._books.now_s = cut.now_s
        if cut.republished is None:
            self._cut[cut.txid] = cut.metadata  # a republished batch is stored already, in its record
        attempt = self._transactions.take_in(
            cut.txid, cut.metadata, cut.byte_count, cut.notes, republished=cut.republished
        )
        self._issued.append(attempt)
        self._cuts.append(TransactionCut(cut.txid, cut.now_s, cut.byte_count))
        yield from self._continue(cut.txid + 1)

    def end(self, nothing: NothingToCut) -> Iterator[Decision]:
        """Ends the round, because the spout has nothing more at this time."""
        self._books.now_s = nothing.now_s
        yield from self._end()

    def _continue(self, first_txid: int) -> Iterator[Decision]:
        """Issues attempts from a txid up to the first transaction that must be cut; the round ends with the window."""
        for txid in range(first_txid, self.window_end()):
            if self._transactions.current_of(txid) is not None:
                continue
            if self._transactions.is_resting(txid, self._books.now_s):
                self.has_rest = True
                break
            if self._is_to_be_cut(txid):
                yield Cut(txid, self._previous(txid), is_new=txid not in self._transactions)
                return
            self._issued.append(self._transactions.issue(txid))
        yield from self._end()

    def _end(self) -> Iterator[Decision]:
        """Ends the round: stores metadata of new transactions before anything depends on it, and announces attempts."""
        assert self.is_under_way
        self.is_under_way = False
        cut, self._cut = self._cut, {}
        issued, self._issued = self._issued, []
        cuts, self._cuts = self._cuts, []
        if cut and not self._is_opaque:
            yield StoreMetadata(self._books.metadata.coordinator_entries(cut))
        if issued:
            yield AttemptsIssued(tuple(issued), tuple(cuts))

    def _is_to_be_cut(self, txid: int) -> bool:
        """Returns whether the spout has to cut a transaction: an opaque spout cuts every attempt."""
        if txid not in self._transactions:
            return True
        return self._is_opaque and self._transactions[txid].republished is None

    def _previous(self, txid: int) -> Any:
        if txid - 1 in self._transactions:
            return self._transactions[txid - 1].metadata
        if txid > 1 and not self._is_opaque:
            raise ProtocolError(f"txid {txid} cannot be cut: the metadata of txid {txid - 1} is unknown")
        return None

    def window_end(self) -> int:
        """Returns the lowest txid that may not be cut yet."""
        last_txid = self._books.options.last_txid
        end = self._transactions.currtx + self._books.waves.size.window()
        return self._failures.window_end(end if last_txid is None else min(end, last_txid + 1))
