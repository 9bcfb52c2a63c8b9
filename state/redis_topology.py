"""A topology on its server, used without owning it: check the server, look, show, drop."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

from state.errors import StateRefusedError
from state.keys import Keys
from state.receipt import parse_receipt
from state.redis_address import redact
from state.redis_connection import RedisConnection, connect
from state.redis_drop import drop_topology
from state.redis_presence import connected_runs
from state.redis_records import RedisRecords
from state.redis_replies import text_of, texts_by_name
from state.redis_rights import require_all_rights
from state.redis_server import evicted_keys, refuse_unfit_server
from state.redis_watch import ServerWatch
from state.stored_metadata import checked_control, unpack_metadata, verified_metadata
from state.stored_topology import FoundTopology, TopologyStatus

FIRST_CONTACT_TIMEOUT_S = 10.0
"""How long `RedisTopology.check_server` waits for a server that may not exist."""


class ConnectionOptions(TypedDict, total=False):
    """What `RedisTopology` takes beyond the address and the topology."""

    client: Any
    revive: Callable[[], None] | None
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    unreachable_timeout_s: float


class RedisTopology:
    """One topology on its server, as anyone may look at it or remove it; safe to use from several threads.

    Args:
        url: redis://, rediss:// or unix:// address. Messages never show its credentials.
        topology_id: a valid name.
        client: used instead of connecting to `url` (fakeredis in tests).
        revive: restarts an embedded server after a lost connection.
        clock, sleep: in seconds; injected by tests.
        unreachable_timeout_s: how long an unanswered call is repeated.

    Raises:
        TopologyError: the URL is malformed, or the topology id is not a valid name.
    """

    def __init__(
        self,
        url: str,
        topology_id: str,
        *,
        client: Any = None,
        revive: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        unreachable_timeout_s: float = 60.0,
    ) -> None:
        self.keys = Keys(topology_id)
        self.server = redact(url)
        self._is_injected = client is not None
        self._timeout_s = unreachable_timeout_s
        self._evicted_keys = 0
        self._connection = RedisConnection(
            client if client is not None else connect(url),
            self.server,
            timeout_s=unreachable_timeout_s,
            revive=revive,
            clock=clock,
            sleep=sleep,
        )

    def check_server(self) -> None:
        """Checks that the server is fit and loads the function library; called once at start.

        Raises:
            StateRefusedError: the server is too old, a replica or evicting, refuses the password, or lacks a
                command or the right to use one.
            StateUnreachableError: no answer within ten seconds.
        """
        first_contact_s = min(FIRST_CONTACT_TIMEOUT_S, self._timeout_s)
        try:
            info = self._connection.call("INFO", timeout_s=first_contact_s)
        except StateRefusedError as error:
            if not self._is_injected or "unknown command" not in str(error.__cause__):
                raise
            info = None  # an injected client of a server in memory, which has no INFO
        if info is not None:
            refuse_unfit_server(info, self.server)
            self._evicted_keys = evicted_keys(info)
        self._connection.load_library()
        require_all_rights(self._connection, self.keys)

    def watch(self, clock: Callable[[], float]) -> ServerWatch:
        """Returns what checks the server during a run; called once, after `check_server`."""
        return ServerWatch(self._connection, evicted_before=self._evicted_keys, clock=clock)

    def look(self) -> FoundTopology | None:
        """Returns what `acquire` would take over, or None if there is nothing; changes nothing.

        Called once at start, before `acquire`, so that a start refused for what it finds fences nobody out.

        Raises:
            StateRefusedError: some of the stored metadata is lost or altered.
            StateUnreachableError: no answer in time.
        """
        reply = self._connection.function("look", "2", self.keys.control, self.keys.metadata, read_only=True)
        if not reply:
            return None
        committed, source, topology, stored_sum = map(text_of, reply[:4])
        checked_control(self.keys, {"committed": committed})
        packed = verified_metadata(self.keys, reply[4:], stored_sum)[0]
        return FoundTopology(int(committed), source, topology, unpack_metadata(self.keys, packed))

    def status(self) -> TopologyStatus | None:
        """Returns what is stored about the topology, or None; needs no ownership.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
        """
        reply = self._status()
        control = checked_control(self.keys, texts_by_name(reply[2:]))
        if not control:
            return None
        return TopologyStatus(
            topology_id=self.keys.topology_id,
            committed_txid=int(control.get("committed", "0")),
            generation=control.get("generation", ""),
            fence=control.get("fence", ""),
            topology=control.get("topology", ""),
            source_fingerprint=control.get("source_fingerprint", ""),
            metadata_count=int(reply[0]),
            last_receipt=parse_receipt(self.keys, text_of(reply[1])),
            is_dropping="dropping" in control,
        )

    def has_records(self) -> bool:
        """Whether the topology's control key exists, readable or not."""
        return bool(int(self._connection.call("EXISTS", self.keys.control)))

    def existing_states(self, names: Iterable[str]) -> list[str]:
        """Returns those of the named states that exist on the server; called once at start, before `acquire`."""
        return [name for name in names if int(self._connection.call("EXISTS", self.keys.state(name)))]

    def connected_runs(self) -> int:
        """Returns how many runs of the topology are connected, 0 if the server does not say; needs no ownership."""
        return connected_runs(self._connection, self.keys)

    def records(self) -> RedisRecords:
        """Returns what reads everything that is stored, without the function library; for `txbatch verify`."""
        return RedisRecords(self._connection, self.keys)

    def drop(self) -> int:
        """Deletes every key of the topology and returns how many there were.

        It fences a running coordinator first and deletes the control key last, so nothing of the topology can
        reappear. If it is interrupted, the topology stays unusable until it is dropped again.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
            FencedError: other coordinators keep taking over at the same time.
        """
        return drop_topology(self._connection, self.keys, nonce=secrets.token_hex(16))

    def close(self) -> None:
        """Closes the connection; the state stays."""
        self._connection.close()

    def _status(self) -> list[Any]:
        own = [self.keys.control, self.keys.metadata, self.keys.receipts]
        return list(self._connection.function("status", "3", *own, read_only=True))

    def _control(self) -> dict[str, str]:
        return checked_control(self.keys, texts_by_name(self._status()[2:]))
