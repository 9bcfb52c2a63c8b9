"""The state of a topology as the driver sees it: acquire, store metadata, commit, look, drop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from state.attempt import TransactionAttempt
from state.codec import unpack
from state.commit import Commit, CommitReply, CommitStatus
from state.errors import FencedError, ProtocolError, StateRefusedError
from state.keys import Keys
from state.redis_address import redact
from state.redis_arguments import CommitTooLargeError, commit_arguments, metadata_arguments
from state.redis_connection import RedisConnection, connect
from state.redis_server import ServerFacts, facts_of

FIRST_CONTACT_TIMEOUT_S = 10.0
"""How long `check_server` waits for a server that was perhaps never there."""
ACQUIRE_TRIES = 20
UNLINK_BATCH = 500
RECEIPTS_KEPT = 1024
"""Receipts of so many txids are kept; the same number stands in redis_functions.lua."""


@dataclass(frozen=True, slots=True)
class Acquired:
    """What a coordinator owns after `RedisStore.acquire`, and where it goes on.

    Attributes:
        fence: token that every write must carry.
        generation: hexadecimal number drawn at the topology's first start.
        committed_txid: last committed transaction, 0 at first.
        metadata: stored metadata field -> value.
        previous_topology_fingerprint: of the run before this one, "" at first.
    """

    fence: str
    generation: str
    committed_txid: int
    metadata: dict[str, Any]
    previous_topology_fingerprint: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was published for a txid.

    Attributes:
        attempt_id: the attempt that was committed.
        digest: content address of the group's changes, hexadecimal.
        first_txid, last_txid: the group it was published with.
    """

    attempt_id: int
    digest: str
    first_txid: int
    last_txid: int


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """What is stored about a topology, for ``txbatch status``."""

    topology_id: str
    committed_txid: int
    generation: str
    fence: str
    topology_fingerprint: str
    source_fingerprint: str
    metadata_count: int
    last_receipt: Receipt | None
    is_dropping: bool


class RedisStore:
    """The one writer of a topology's state; lives in the driver, safe to use from several threads.

    Args:
        url: redis://, rediss:// or unix:// address. Credentials in it never appear in a message.
        topology_id: a valid name.
        client: used instead of connecting to `url` (fakeredis in tests).
        revive: brings an embedded server back after a lost connection.
        clock, sleep: seconds; injected by tests.
        unreachable_timeout_s: how long a call without answer is repeated.

    Raises:
        StateRefusedError: the URL cannot be understood.
        TopologyError: the topology id is not a valid name.
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
        self._fence = self._generation = ""
        self._connection = RedisConnection(
            client if client is not None else connect(url),
            self.server,
            timeout_s=unreachable_timeout_s,
            revive=revive,
            clock=clock,
            sleep=sleep,
        )

    def check_server(self) -> ServerFacts:
        """Makes sure of the server and loads the function library; called once at start.

        Raises:
            StateRefusedError: too old, a replica, evicting, wrong password, or lacking a right.
            StateUnreachableError: nobody answers within ten seconds.
        """
        first_contact_s = min(FIRST_CONTACT_TIMEOUT_S, self._timeout_s)
        try:
            facts = facts_of(self._connection.call("INFO", timeout_s=first_contact_s), self.server)
        except StateRefusedError as error:
            if not self._is_injected or "unknown command" not in str(error.__cause__):
                raise
            facts = ServerFacts("redis", "", "noeviction", is_cluster=False, has_append_only_file=False)
        self._connection.load_library()
        return facts

    def acquire(
        self,
        *,
        nonce: str,
        new_generation: str,
        topology_fingerprint: str,
        source_fingerprint: str,
        adopt: bool = False,
    ) -> Acquired:
        """Becomes the owner of the topology; the newer one wins, the older is fenced from now on.

        Called once at start. Repeating it with the same nonce answers the same.

        Args:
            nonce: 128-bit random, hexadecimal, new for every run.
            new_generation: 128-bit random, hexadecimal; used if this is the topology's first start.
            topology_fingerprint: stored; a change is adopted, since a restart is a batch boundary.
            source_fingerprint: must equal the stored one, unless `adopt`.
            adopt: go on with another input from the committed transaction.

        Raises:
            StateRefusedError: another input, another format, lost state, or a drop left unfinished.
            StateUnreachableError: no answer within the time allowed.
            FencedError: others keep taking over at the same time.
        """
        own = [self.keys.control, self.keys.metadata, self.keys.receipts]
        given = [nonce, new_generation, topology_fingerprint, source_fingerprint, "1" if adopt else ""]
        previous = self._control().get("fence", "")
        for _ in range(ACQUIRE_TRIES):
            reply = self._connection.function("acquire", "3", *own, previous, *given)
            status = _text(reply[0])
            if status == "OK":
                return self._acquired(reply)
            if status != "RACED":
                self._refuse_acquire(status, [_text(item) for item in reply[1:]])
            previous = _text(reply[1])
        raise FencedError(self.keys.topology_id)

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        """Stores all entries and deletes `forget` in one fenced step; called before attempts are emitted.

        Raises:
            CodecError: a value would not come back as it is; nothing was stored.
            FencedError: a newer coordinator owns the topology.
            StateRefusedError: the server's state was lost, replaced or is of another version.
            StateUnreachableError: no answer within the time allowed.
        """
        fence, generation = self._owned()
        arguments = [fence, generation, *metadata_arguments(entries, forget)]
        reply = self._connection.function("metadata", "2", self.keys.control, self.keys.metadata, *arguments)
        status, sentence = CommitStatus(_text(reply[0])), _text(reply[1])
        if status is CommitStatus.FENCED:
            raise FencedError(self.keys.topology_id)
        if status is not CommitStatus.OK:
            raise StateRefusedError(f"topology {self.keys.topology_id!r} cannot store metadata: {status}: {sentence}")

    def commit(self, commit: Commit) -> CommitReply:
        """Publishes a group in one atomic step, repeating the identical call until it is answered.

        Every answer is returned as a status; OK and ALREADY both mean it is published once.

        Raises:
            CodecError: a metadata value would not come back as it is; nothing was changed.
            StateRefusedError: the server cannot do it (out of memory, read-only, no rights).
            StateUnreachableError: no answer within the time allowed; it may or may not be applied, and a
                later `acquire` tells which.
        """
        fence, generation = self._owned()
        try:
            arguments = commit_arguments(self.keys, commit, fence=fence, generation=generation)
        except CommitTooLargeError as error:
            return CommitReply(CommitStatus.LIMIT, str(error))
        reply = self._connection.function("commit", *arguments)
        return CommitReply(CommitStatus(_text(reply[0])), _text(reply[1]))

    def status(self) -> TopologyStatus | None:
        """What is stored about the topology, or None; needs no ownership.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
        """
        reply = self._status()
        control = _pairs(reply[2:])
        if not control:
            return None
        return TopologyStatus(
            topology_id=self.keys.topology_id,
            committed_txid=int(control.get("committed", "0")),
            generation=control.get("generation", ""),
            fence=control.get("fence", ""),
            topology_fingerprint=control.get("topology_fingerprint", ""),
            source_fingerprint=control.get("source_fingerprint", ""),
            metadata_count=int(reply[0]),
            last_receipt=_receipt(_text(reply[1])),
            is_dropping="dropping" in control,
        )

    def last_group(self) -> tuple[TransactionAttempt, ...]:
        """The attempts that were committed together last, in order; of a group beyond `RECEIPTS_KEPT` the last ones.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
        """
        status = self.status()
        if status is None or status.last_receipt is None:
            return ()
        txids = range(status.last_receipt.first_txid, status.last_receipt.last_txid + 1)[-RECEIPTS_KEPT:]
        found = self._connection.call("HMGET", self.keys.receipts, *map(str, txids))
        receipts = [_receipt(_text(item or b"")) for item in found]
        return tuple(
            TransactionAttempt(txid, receipt.attempt_id)
            for txid, receipt in zip(txids, receipts, strict=True)
            if receipt is not None
        )

    def drop(self) -> int:
        """Deletes every key of the topology and returns how many there were.

        A running coordinator is fenced out first and the control key goes last, so nothing of it can
        come back. Interrupted, the topology stays unusable until it is dropped again.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
        """
        own = [self.keys.control, self.keys.metadata, self.keys.receipts]
        existed = int(self._connection.call("EXISTS", *own))
        if not existed and not self._scan(set()):
            return 0
        self._connection.function("drop", "3", *own, "begin")
        names = sorted(self._scan({name.encode() for name in own}))
        for start in range(0, len(names), UNLINK_BATCH):
            self._connection.call("UNLINK", *names[start : start + UNLINK_BATCH])
        self._connection.function("drop", "3", *own, "end")
        return existed + len(names)

    def close(self) -> None:
        """Closes the connection; state stays."""
        self._connection.close()

    def _scan(self, without: set[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        cursor = "0"
        while True:  # bounded: SCAN ends after one pass over the server's keys
            reply = self._connection.call("SCAN", cursor, "MATCH", self.keys.pattern, "COUNT", "1000")
            found.update(reply[1])
            cursor = _text(reply[0])
            if cursor == "0":
                return found - without

    def _status(self) -> list[Any]:
        own = [self.keys.control, self.keys.metadata, self.keys.receipts]
        return list(self._connection.function("status", "3", *own, read_only=True))

    def _control(self) -> dict[str, str]:
        return _pairs(self._status()[2:])

    def _acquired(self, reply: Sequence[Any]) -> Acquired:
        fence, generation, committed, previous_topology = map(_text, reply[1:5])
        items = reply[5:]
        metadata = {_text(items[i]): unpack(items[i + 1]) for i in range(0, len(items), 2)}
        self._fence, self._generation = fence, generation
        return Acquired(fence, generation, int(committed), metadata, previous_topology)

    def _owned(self) -> tuple[str, str]:
        if not self._fence:
            raise ProtocolError(f"topology {self.keys.topology_id!r} was not acquired before it was written")
        return self._fence, self._generation

    def _refuse_acquire(self, status: str, details: list[str]) -> NoReturn:
        name = self.keys.topology_id
        if status == "SOURCE_CHANGED":
            raise StateRefusedError(
                f"topology {name!r} was started on another input: stored fingerprint {details[0]!r}, given "
                f"{details[1]!r}; run `txbatch drop {name}` to start over, choose another topology id, or "
                "adopt the new input from here on"
            )
        if status == "DROPPING":
            raise StateRefusedError(f"topology {name!r} is being dropped; finish it with `txbatch drop {name}`")
        remedy = {
            "REGRESSED": f"restore the server's data, or start over with `txbatch drop {name}`",
            "VERSION": "run the version of txbatch that wrote it, or drop the topology",
        }.get(status, f"remove the key, or start over with `txbatch drop {name}`")
        raise StateRefusedError(f"topology {name!r} cannot start: {status}: {details[0]}; {remedy}")


def _text(item: Any) -> str:
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


def _pairs(items: Sequence[Any]) -> dict[str, str]:
    return {_text(items[i]): _text(items[i + 1]) for i in range(0, len(items), 2)}


def _receipt(text: str) -> Receipt | None:
    if not text:
        return None
    attempt_id, digest, first, last = text.split(" ")
    return Receipt(int(attempt_id, 16), digest, int(first), int(last))
