"""An ordinary client that reads all the while, and looks whether each read shows whole transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from state.errors import StateRefusedError, StateUnreachableError
from state.redis_admin.snapshots import snapshot
from state.troubles import Trouble
from tests.support.chaos.nemesis.history import Reads
from tests.support.chaos.nemesis.ledger_job import STATES
from tests.support.chaos.nemesis.verifier import HASHES, Complaint, Verifier, View, atomic_read

PAUSE_S = 0.008
RECONNECT_S = 0.01
COMPLAINTS_MAX = 20


@dataclass
class Sightings:
    """What was seen.

    Attributes:
        reads: atomic reads, by MULTI and by `snapshot` in turn.
        states: how many of them showed another txid than the one before.
        absences: how often nobody answered.
    """

    reads: int = 0
    states: int = 0
    absences: int = 0


class Onlooker:
    """Reads one topology on a thread of its own.

    Args:
        connect: makes a client that answers bytes and never retries.
        topology_id: what to read.
        verifier: says what is wrong.
        has_order: see `Verifier.complaints`.
        complain: called with everything that is wrong.
        reads: where all that is seen is written down.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        topology_id: str,
        verifier: Verifier,
        *,
        has_order: bool,
        complain: Callable[[Complaint], None],
        reads: Reads,
    ) -> None:
        self.sightings = Sightings()
        self._connect, self._topology_id, self._verifier = connect, topology_id, verifier
        self._has_order, self._complain, self._reads = has_order, complain, reads
        self._last: int | None = None
        self._may_go_back = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._complaints_left = COMPLAINTS_MAX
        self._thread = threading.Thread(target=self._run, name="onlooker", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()

    @contextmanager
    def going_back(self) -> Iterator[None]:
        """While the server may lose writes, a lower txid than before is no fault."""
        with self._lock:
            self._may_go_back = True
        try:
            yield
        finally:
            with self._lock:
                self._may_go_back, self._last = False, None

    def _run(self) -> None:
        while not self._stop.wait(RECONNECT_S):
            try:
                with self._connect() as client:
                    while not self._stop.wait(PAUSE_S):
                        with self._lock:
                            call_ns = time.monotonic_ns()
                            view = self._read(client)
                            self._reads.add(call_ns, view.committed, view.flat())
                            self._look(view)
            except (redis.RedisError, StateUnreachableError):
                self.sightings.absences += 1
            except StateRefusedError as error:  # half of a write is there; a file that was cut may leave one
                if error.trouble is not Trouble.TORN:
                    raise
                self.sightings.absences += 1
                if not self._may_go_back:
                    self._tell(Complaint("torn", str(error)))

    def _read(self, client: Any) -> View:
        if self.sightings.reads % 2:
            return atomic_read(client, self._topology_id)
        found = snapshot(client, self._topology_id, STATES)
        return View(found.txid, found.states["last"] or 0, {name: found.states[name] for name in HASHES})

    def _look(self, view: View) -> None:
        self.sightings.reads += 1
        self.sightings.states += self._last != view.committed
        for complaint in self._verifier.complaints(view, has_order=self._has_order):
            self._tell(complaint)
        if self._last is not None and view.committed < self._last and not self._may_go_back:
            self._tell(
                Complaint("went back", f"committed was {self._last}, then {view.committed}, and no write was lost")
            )
        self._last = view.committed

    def _tell(self, complaint: Complaint) -> None:
        if self._complaints_left:
            self._complaints_left -= 1
            self._complain(complaint)
