"""Looks at a server for the pages, one look at a time, and makes the views of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, tzinfo

from coordinator.ui.views.clock import Clock
from coordinator.ui.views.flow_rates import FlowRates
from coordinator.ui.views.heading import Heading, heading_of
from coordinator.ui.views.letters_view import PAGE, LettersView, letters_view
from coordinator.ui.views.quarantine_view import QuarantineView, quarantine_view
from coordinator.ui.views.topologies_view import TopologiesView, topologies_view
from coordinator.ui.views.topology_view import TopologyView, topology_view
from coordinator.ui.views.transaction_view import TransactionView, transaction_view
from coordinator.ui.views.transactions_view import TransactionsView, transactions_view
from state.records.story_choice import StoryChoice
from state.redis_topology.onlooker import Onlooker


class Lookout:
    """Answers what pages ask, from any thread, one question at a time: to the server, many readers are one client.

    All of its methods return None if the topology is not stored, and raise what `Onlooker` raises.

    Args:
        onlooker: of the server.
        clock: seconds since the epoch.
        zone: the time zone in which moments are shown.
    """

    def __init__(self, onlooker: Onlooker, *, clock: Callable[[], float], zone: tzinfo = UTC) -> None:
        self._onlooker, self._clock, self._zone = onlooker, clock, zone
        self._rates = FlowRates()
        self._mutex = threading.Lock()

    @property
    def server(self) -> str:
        """The server's address without credentials."""
        return self._onlooker.server

    def clock(self) -> Clock:
        """Returns the time of a page."""
        return Clock(self._clock(), self._zone)

    def topologies(self) -> TopologiesView:
        """Returns the first page."""
        with self._mutex:
            return topologies_view(self._onlooker.topologies(), self.clock())

    def topology(self, topology_id: str) -> TopologyView | None:
        """Returns the page of a topology."""
        with self._mutex:
            seen = self._onlooker.overview(topology_id)
            if seen is None:
                return None
            rates = {} if seen.pulse is None else self._rates.of(topology_id, seen.pulse)
            return topology_view(seen, rates, self.clock())

    def transactions(self, topology_id: str, *, choice: StoryChoice, before: int | None) -> TransactionsView | None:
        """Returns a page of the history."""
        with self._mutex:
            heading = self._heading(topology_id)
            page = self._onlooker.transactions(topology_id, before=before, choice=choice)
            if heading is None or page is None:
                return None
            return transactions_view(heading, page, choice=choice, before=before, clock=self.clock())

    def transaction(self, topology_id: str, txid: int) -> TransactionView | None:
        """Returns the page of a transaction."""
        with self._mutex:
            heading = self._heading(topology_id)
            known = self._onlooker.transaction(topology_id, txid)
            return None if heading is None or known is None else transaction_view(heading, known, self.clock())

    def letters(self, topology_id: str, *, offset: int) -> LettersView | None:
        """Returns a page of dead letters."""
        with self._mutex:
            heading = self._heading(topology_id)
            if heading is None:
                return None
            return letters_view(heading, self._onlooker.letters(topology_id, offset=offset, limit=PAGE))

    def quarantine(self, topology_id: str) -> QuarantineView | None:
        """Returns the quarantine."""
        with self._mutex:
            heading = self._heading(topology_id)
            if heading is None:
                return None
            return quarantine_view(heading, self._onlooker.quarantined(topology_id), self.clock())

    def _heading(self, topology_id: str) -> Heading | None:
        seen = self._onlooker.overview(topology_id, with_samples=False)
        return None if seen is None else heading_of(seen, self.clock())
