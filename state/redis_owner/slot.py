"""A slot on its server, a topology's own or a shard's: checks of the server, and the records a start finds there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from state.commits.quarantine import QuarantineRecord, unpack_record
from state.errors import StateRefusedError
from state.keys import Keys, is_chain
from state.metadata import checked_control, unpack_metadata, verified_metadata
from state.records.durability import GUARANTEED, Durability, DurabilityLevel, DurabilityReport, ServerDurability
from state.records.topology_overview import FoundTopology
from state.redis_client.address import redact
from state.redis_client.connection import RedisConnection, connect, pairs_of, text_of
from state.redis_client.rights import require_all_rights
from state.redis_owner.barrier import Barrier, OwnConnection, PooledConnection
from state.redis_owner.fitness import ServerWatch, evicted_keys, refuse_unfit_server, unknown_facts
from state.redis_owner.measured_durability import measure_durability
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch.redis")
FIRST_CONTACT_TIMEOUT_S = 10.0
"""How long `RedisSlot.check_server` waits for a server that may not exist."""


class ConnectionOptions(TypedDict, total=False):
    client: Any
    revive: Callable[[], None] | None
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    unreachable_timeout_s: float
    own_connection: Callable[[Any], OwnConnection]


class RedisSlot:
    """One slot of a topology, readable by anyone; safe to use from several threads.

    Every call, also of derived classes, raises StateRefusedError if the server refuses it or the stored data is
    unreadable, and StateUnreachableError without an answer in time.

    Args:
        url: the server's address; messages never show its credentials.
        topology_id: a valid name.
        keys: a shard's keys, see `Keys.shard`; by default the topology's own.
        client: used instead of connecting to `url` (fakeredis in tests).
        revive: restarts an embedded server after a lost connection.
        clock, sleep: in seconds; injected by tests.
        unreachable_timeout_s: how long an unanswered call is repeated.
        own_connection: takes a separate connection from a client; injected by the simulator.

    Raises:
        TopologyError: the URL is malformed, or the topology id is not a valid name.
    """

    def __init__(
        self,
        url: str,
        topology_id: str,
        *,
        keys: Keys | None = None,
        client: Any = None,
        revive: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        unreachable_timeout_s: float = 60.0,
        own_connection: Callable[[Any], OwnConnection] = PooledConnection,
    ) -> None:
        self.keys = keys or Keys(topology_id)
        self.server = redact(url)
        self._is_injected = client is not None
        self.unreachable_timeout_s = unreachable_timeout_s
        self._evicted_keys, self._expires = 0, True
        self._asked = Durability()
        self._gives = ServerDurability()
        self._clock, self._sleep = clock, sleep
        self._barrier: Barrier | None = None
        self._own_connection = own_connection
        self._call_options: dict[str, Any] = {
            "timeout_s": unreachable_timeout_s,
            "revive": revive,
            "clock": clock,
            "sleep": sleep,
        }
        made = client if client is not None else connect(url, key=self.keys.control)
        self._connection = self.another_connection(made)

    @property
    def connection(self) -> RedisConnection:
        return self._connection

    def check_server(
        self, asked: Durability | None = None, *, expires: bool = True, fields_expire: bool = False
    ) -> None:
        """Checks that the server is fit and loads the function library; called once at start.

        `asked` is the durability that the server has to confirm, by default level memory. `expires` says whether keys
        of the topology may expire, `fields_expire` whether fields of its hashes may. Gives up after ten seconds.

        Raises:
            StateRefusedError: the server is too old, a replica or evicting, refuses the password, lacks a command or
                the right to use one, or cannot provide the durability asked for.
        """
        self._asked, self._expires = asked or Durability(), expires
        info = self._info()
        if info or not self._is_injected:
            refuse_unfit_server(info, self.server, expires=expires)
            if unknown := unknown_facts(info):
                _LOG.warning("server %s does not say %s; it is taken to be fit", self.server, ", ".join(unknown))
            self._evicted_keys = evicted_keys(info)
            self._gives = measure_durability(self._connection, info, self._asked.level)
        lacking = self._gives.lacks(self._asked)
        if lacking:
            needs = f"; this run needs it because {self._asked.because}" if self._asked.because else ""
            raise StateRefusedError(
                f"server {self.server} cannot confirm durability {self._asked.level.value}: {lacking}{needs}; or run "
                "with --durability memory or service; memory (in Python durability='memory') waits for nothing, so a "
                "power cut may lose commits whose input has been released; service is for a service that guarantees to "
                "lose nothing, such as MemoryDB"
            ).about(Trouble.DURABILITY)
        self._connection.load_library()
        require_all_rights(self._connection, self.keys, self._asked.level, fields_expire=fields_expire)

    @property
    def durability(self) -> DurabilityReport:
        """The durability that the run waits for, and what a power cut may take from the server."""
        is_guaranteed = self._asked.level is DurabilityLevel.SERVICE
        return DurabilityReport(self._asked, GUARANTEED if is_guaranteed else self._gives.can_lose())

    def watch(self, clock: Callable[[], float]) -> ServerWatch:
        """Returns a watch that checks the server during a run; called once, after `check_server`."""
        return ServerWatch(self._connection, expires=self._expires, evicted_before=self._evicted_keys, clock=clock)

    def look(self) -> FoundTopology | None:
        """Returns the topology that `RedisStore.acquire` would take over, None if nothing is stored; changes nothing.

        Called once at start, before `acquire`, so that a start refused because of its findings fences no other run.
        """
        reply = self._connection.function("look", "2", self.keys.control, self.keys.metadata, read_only=True)
        if not reply:
            return None
        committed, source, topology, stored_sum = map(text_of, reply[:4])
        checked_control(self.keys, {"committed": committed})
        packed = verified_metadata(self.keys, reply[4:], stored_sum)[0]
        found = {field: value for field, value in unpack_metadata(self.keys, packed).items() if not is_chain(field)}
        return FoundTopology(int(committed), source, topology, found)

    def has_records(self) -> bool:
        """Returns whether the topology's control key exists, readable or not."""
        return bool(int(self._connection.call("EXISTS", self.keys.control)))

    def fields(self, *names: str) -> dict[str, str]:
        """Returns those of the named fields that the control hash has."""
        return present(names, self._connection.call("HMGET", self.keys.control, *names))

    def existing_states(self, names: Iterable[str], with_parts: Iterable[str] = ()) -> list[str]:
        """Returns the named states that exist on the server; called once at start, before `acquire`.

        States in `with_parts` have one key per part, and exist if any of these keys does.
        """
        existing = [name for name in names if int(self._connection.call("EXISTS", self.keys.state(name)))]
        keys_like = self._connection.keys_like
        return existing + [name for name in with_parts if any(keys_like(self.keys.parts_pattern(name)))]

    def quarantined(self) -> list[QuarantineRecord]:
        """Returns the quarantined batches, by txid."""
        return quarantined(self._connection, self.keys)

    def close(self) -> None:
        if self._barrier is not None:
            self._barrier.close()
        self._connection.close()

    def another_connection(self, client: Any, **changes: Any) -> RedisConnection:
        """Returns a connection through another client, with this connection's options except for the given changes."""
        return RedisConnection(client, self.server, **{**self._call_options, **changes})

    def _own_barrier(self) -> Barrier:
        """Returns the barrier of this slot, on a separate connection; created by the first call."""
        if self._barrier is None:
            own = self._own_connection(self._connection.client)
            self._barrier = Barrier(own, self.another_connection(own), self._asked, clock=self._clock)
        return self._barrier

    def _info(self) -> Mapping[str, Any]:
        """Returns the reply to INFO; empty for a server without the command, such as one in memory."""
        try:
            first_contact_s = min(FIRST_CONTACT_TIMEOUT_S, self.unreachable_timeout_s)
            info: Mapping[str, Any] = self._connection.info(first_contact_s)
        except StateRefusedError as error:
            if "unknown command" not in str(error.__cause__).lower():
                raise
            return {}
        return info


def quarantined(connection: RedisConnection, keys: Keys) -> list[QuarantineRecord]:
    """Returns the quarantined batches of a topology, by txid; their number is limited."""
    found = pairs_of(connection.call("HGETALL", keys.quarantine))
    records = [unpack_record(keys, text_of(txid), bytes(packed)) for txid, packed in found]
    return sorted(records, key=lambda record: record.txid)


def present(names: Sequence[str], values: Sequence[Any]) -> dict[str, str]:
    """Returns the existing fields in a reply to HMGET."""
    return {name: text_of(value) for name, value in zip(names, values, strict=True) if value is not None}
