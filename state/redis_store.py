"""A topology's state as the driver sees it: look, acquire, store metadata, commit, drop.

The owner's writes are one sequence. Each carries the revision it expects, and the server applies it at that
revision or not at all. A server that has lost its last writes therefore refuses the next one before it changes
anything; see redis_functions.lua.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from state.attempt import TransactionAttempt
from state.codec import pack_exact
from state.commit import Commit, CommitReply, CommitStatus
from state.errors import FencedError, ProtocolError, StateRefusedError
from state.keys import Keys
from state.metadata_sum import MetadataSum, MetadataSumChange
from state.printable import counted
from state.receipt import parse_receipt
from state.redis_address import redact
from state.redis_arguments import (
    Argument,
    CommitTooLargeError,
    call_digest,
    commit_arguments,
    metadata_arguments,
)
from state.redis_connection import RedisConnection, connect
from state.redis_drop import drop_topology
from state.redis_presence import announce_run, connected_runs
from state.redis_rights import require_all_rights
from state.redis_server import ServerFacts, facts_of
from state.redis_watch import ServerWatch
from state.stored_metadata import checked_control, unpack_metadata, unreadable_metadata
from state.stored_topology import Acquired, FoundTopology, TopologyStatus

FIRST_CONTACT_TIMEOUT_S = 10.0
"""How long `check_server` waits for a server that may not exist."""
ACQUIRE_TRIES = 20
RECEIPTS_KEPT = 1024
"""How many txids keep their receipt; redis_functions.lua has the same number."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """What every call of the owner carries.

    Attributes:
        fence: identifies the owner.
        generation: identifies this life of the topology; drawn when it was first started.
        revision: the exact number of writes that the server must have applied before this call.
    """

    fence: str
    generation: str
    revision: int

    def arguments(self) -> list[Argument]:
        """Returns them in the order the function library reads them."""
        return [self.fence, self.generation, str(self.revision)]


class RedisStore:
    """The only writer of a topology's state; lives in the driver, safe to use from several threads.

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
        self._owned: Ownership | None = None
        self._metadata_sum = MetadataSum({})
        self._new_descriptions = ("", "")  # source fingerprint and topology, until a write has stored them
        self._sequence = threading.Lock()
        self._connection = RedisConnection(
            client if client is not None else connect(url),
            self.server,
            timeout_s=unreachable_timeout_s,
            revive=revive,
            clock=clock,
            sleep=sleep,
        )

    def check_server(self) -> ServerFacts:
        """Checks that the server is fit and loads the function library; called once at start.

        Raises:
            StateRefusedError: the server is too old, a replica or evicting, refuses the password, or lacks a
                command or the right to use one.
            StateUnreachableError: no answer within ten seconds.
        """
        first_contact_s = min(FIRST_CONTACT_TIMEOUT_S, self._timeout_s)
        try:
            facts = facts_of(self._connection.call("INFO", timeout_s=first_contact_s), self.server)
        except StateRefusedError as error:
            if not self._is_injected or "unknown command" not in str(error.__cause__):
                raise
            facts = ServerFacts("redis", "", "noeviction", is_cluster=False, has_append_only_file=False)
        self._connection.load_library()
        require_all_rights(self._connection, self.keys)
        self._evicted_keys = facts.evicted_keys
        return facts

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
        committed, source, topology, stored_sum = map(_text, reply[:4])
        checked_control(self.keys, {"committed": committed})
        packed = self._verified(reply[4:], stored_sum)[0]
        return FoundTopology(int(committed), source, topology, unpack_metadata(self.keys, packed))

    def acquire(
        self,
        *,
        nonce: str,
        new_generation: str,
        topology: str,
        source_fingerprint: str,
        accepted: FoundTopology | None = None,
    ) -> Acquired:
        """Becomes the owner of the topology; the newer owner wins and the older one is fenced from then on.

        Called once at start; repeating it with the same nonce gives the same answer. It leaves the stored topology and
        input unchanged: the owner's first write stores a change of either, in the same step.

        Args:
            nonce: 128 random bits in hexadecimal, new for every run.
            new_generation: 128 random bits in hexadecimal, used at the topology's first start.
            topology: description of the topology.
            source_fingerprint: of the input.
            accepted: what the caller found stored and agrees to replace; if None, topology and input must equal
                what is stored.

        Raises:
            StateRefusedError: input, topology or format differ, state or metadata is lost, or a drop was left
                unfinished.
            StateUnreachableError: no answer in time.
            FencedError: other coordinators keep taking over at the same time.
        """
        own = [self.keys.control, self.keys.metadata, self.keys.receipts]
        given = [nonce, new_generation, topology, source_fingerprint]
        given += ["", ""] if accepted is None else [accepted.topology, accepted.source_fingerprint]
        previous = self._control().get("fence", "")
        for _ in range(ACQUIRE_TRIES):
            reply = self._connection.function("acquire", "3", *own, previous, *given)
            status = _text(reply[0])
            if status == "OK":
                acquired = self._acquired(reply, source_fingerprint, topology)
                announce_run(self._connection, self.keys)
                return acquired
            if status != "RACED":
                self._refuse_acquire(status, [_text(item) for item in reply[1:]])
            previous = _text(reply[1])
        raise FencedError(self.keys.topology_id)

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        """Stores all entries and deletes `forget` in one fenced step; called before attempts are emitted.

        Raises:
            CodecError: a value would not be read back unchanged; nothing was stored.
            FencedError: a newer coordinator owns the topology.
            StateRefusedError: the server's state was lost or replaced, or has another version.
            StateUnreachableError: no answer in time.
        """
        packed = {field: pack_exact(value) for field, value in entries.items()}
        keys = [self.keys.control, self.keys.metadata]
        change = self._metadata_sum.change(packed, forget)
        reply = self._write("metadata", keys, metadata_arguments(packed, forget), change)
        self._refuse_strangers(reply.status)
        if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
            raise self._not_as_left("cannot store metadata", reply)

    def commit(self, commit: Commit) -> CommitReply:
        """Publishes a group in one atomic step, repeating the identical call until it is answered.

        Every answer is returned as a status; OK and ALREADY both mean that the group is published exactly once.

        Raises:
            CodecError: a metadata value would not be read back unchanged; nothing was changed.
            StateRefusedError: the server cannot do it (out of memory, read-only, no rights).
            StateUnreachableError: no answer in time; the commit may or may not be applied, and a later `acquire`
                tells which.
        """
        packed = {field: pack_exact(value) for field, value in commit.metadata.items()}
        try:
            keys, arguments = commit_arguments(self.keys, commit, packed)
        except CommitTooLargeError as error:
            return CommitReply(CommitStatus.LIMIT, str(error))
        return self._write("commit", keys, arguments, self._metadata_sum.change(packed, commit.forget))

    def confirm(self) -> None:
        """Checks that the server still holds every write of this owner; called before a run reports success.

        Raises:
            FencedError: a newer coordinator owns the topology.
            StateRefusedError: the server has lost writes it had confirmed.
            StateUnreachableError: no answer in time.
        """
        if any(self._new_descriptions):  # accepted, but no write has stored them yet
            self.store_metadata({})
        self._owned_reply("confirm", self.keys.control)

    def status(self) -> TopologyStatus | None:
        """Returns what is stored about the topology, or None; needs no ownership.

        Raises:
            StateRefusedError, StateUnreachableError: as `acquire`.
        """
        reply = self._status()
        control = checked_control(self.keys, _pairs(reply[2:]))
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
            last_receipt=parse_receipt(self.keys, _text(reply[1])),
            is_dropping="dropping" in control,
        )

    def last_group(self) -> tuple[TransactionAttempt, ...]:
        """Returns the attempts of the last committed group, in order; at most its last `RECEIPTS_KEPT`.

        Only for the owner, so that no spout is told of a group that the server no longer holds.

        Raises:
            FencedError, StateRefusedError, StateUnreachableError: as `confirm`.
        """
        items = self._owned_reply("last_group", self.keys.control, self.keys.receipts)
        receipts = {int(items[i]): parse_receipt(self.keys, _text(items[i + 1])) for i in range(0, len(items), 2)}
        return tuple(TransactionAttempt(txid, receipt.attempt_id) for txid, receipt in receipts.items() if receipt)

    def has_records(self) -> bool:
        """Whether the topology's control key exists, readable or not."""
        return bool(int(self._connection.call("EXISTS", self.keys.control)))

    def existing_states(self, names: Iterable[str]) -> list[str]:
        """Returns those of the named states that exist on the server; called once at start, before `acquire`."""
        return [name for name in names if int(self._connection.call("EXISTS", self.keys.state(name)))]

    def connected_runs(self) -> int:
        """Returns how many runs of the topology are connected, 0 if the server does not say; needs no ownership."""
        return connected_runs(self._connection, self.keys)

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
        return checked_control(self.keys, _pairs(self._status()[2:]))

    def _acquired(self, reply: Sequence[Any], source_fingerprint: str, topology: str) -> Acquired:
        fence, generation, revision, committed, stored_sum, stored_source, stored_topology = map(_text, reply[1:8])
        packed, found_sum = self._verified(reply[8:], stored_sum)
        metadata = unpack_metadata(self.keys, packed)
        self._owned = Ownership(fence, generation, int(revision))
        self._metadata_sum = found_sum
        self._new_descriptions = (
            "" if source_fingerprint == stored_source else source_fingerprint,
            "" if topology == stored_topology else topology,
        )
        return Acquired(fence, generation, int(committed), metadata)

    def _verified(self, items: Sequence[Any], stored_sum: str) -> tuple[dict[str, bytes], MetadataSum]:
        packed = {_text(items[i]): bytes(items[i + 1]) for i in range(0, len(items), 2)}
        found_sum = MetadataSum(packed)
        if str(found_sum) != stored_sum:
            raise StateRefusedError(
                f"topology {self.keys.topology_id!r} cannot start: the server has lost or altered some of its stored "
                f"metadata (checksum over {counted(len(packed), 'field')} is {found_sum}, expected {stored_sum})"
                f"{unreadable_metadata(packed)}; restore its data from a copy taken at one moment, or "
                f"start over with `txbatch drop {self.keys.topology_id}`"
            )
        return packed, found_sum

    def _ownership(self) -> Ownership:
        if self._owned is None:
            raise ProtocolError(f"topology {self.keys.topology_id!r} was used before it was acquired")
        return self._owned

    def _write(
        self, name: str, keys: Sequence[str], arguments: Sequence[Argument], change: MetadataSumChange
    ) -> CommitReply:
        """Makes the owner's next write, which is applied at the revision it expects or refused without effect."""
        with self._sequence:
            owned = self._ownership()
            descriptions = self._new_descriptions
            digest = call_digest([*descriptions, *arguments])
            head = [*owned.arguments(), digest, str(change), *descriptions]
            reply = self._connection.function(name, str(len(keys)), *keys, *head, *arguments)
            status = CommitStatus(_text(reply[0]))
            if status in (CommitStatus.OK, CommitStatus.ALREADY):
                self._owned = Ownership(owned.fence, owned.generation, owned.revision + 1)
                self._metadata_sum.accept(change)
                self._new_descriptions = ("", "")
            return CommitReply(status, _text(reply[1]))

    def _owned_reply(self, name: str, *keys: str) -> list[Any]:
        """Calls a read-only function that answers the owner alone, and returns its reply."""
        reply = self._connection.function(name, str(len(keys)), *keys, *self._ownership().arguments(), read_only=True)
        status = CommitStatus(_text(reply[0]))
        self._refuse_strangers(status)
        if status is not CommitStatus.OK:
            raise self._not_as_left("was stopped", CommitReply(status, _text(reply[1])))
        return list(reply[2:])

    def _refuse_strangers(self, status: CommitStatus) -> None:
        if status in (CommitStatus.FENCED, CommitStatus.DROPPED):
            raise FencedError(self.keys.topology_id, status is CommitStatus.DROPPED)

    def _not_as_left(self, what: str, reply: CommitReply) -> StateRefusedError:
        return StateRefusedError(
            f"topology {self.keys.topology_id!r} {what}: {reply.status}: {reply.detail}; {state_not_as_left(reply)}"
        )

    def _refuse_acquire(self, status: str, details: list[str]) -> NoReturn:
        name = self.keys.topology_id
        if status == "SOURCE_CHANGED":
            raise StateRefusedError(
                f"topology {name!r} was started on another input: stored fingerprint {details[0]!r}, given "
                f"{details[1]!r}; run `txbatch drop {name}` to start over, choose another topology id, or "
                "continue on the new input with --adopt"
            )
        if status == "TOPOLOGY_CHANGED":
            raise StateRefusedError(
                f"topology {name!r} was changed on the server while this run was starting: stored description "
                f"{details[0]!r}, given {details[1]!r}; start the run again"
            )
        if status == "DROPPING":
            raise StateRefusedError(
                f"topology {name!r} is being dropped, or its drop was interrupted; finish it with `txbatch drop {name}`"
            )
        remedy = {
            "REGRESSED": f"restore the server's data, or start over with `txbatch drop {name}`",
            "VERSION": f"run the version of txbatch that wrote it, or start over with `txbatch drop {name}`",
        }.get(status, f"remove the key, or start over with `txbatch drop {name}`")
        raise StateRefusedError(f"topology {name!r} cannot start: {status}: {details[0]}; {remedy}")


def state_not_as_left(reply: CommitReply) -> str:
    """Returns what to do if the server does not hold what its owner left there."""
    if reply.status is CommitStatus.REGRESSED and reply.detail.endswith("is gone"):
        return (
            "the topology was dropped, or the server has lost its state; this run stops; restore the server's "
            "data, or run again to begin with the first transaction"
        )
    if reply.status is CommitStatus.REGRESSED:
        return (
            "the server has returned to an earlier state (a restored backup, a lagging replica, a lost last second); "
            "this run stops and has changed nothing since; run again to continue from what the server holds now"
        )
    return "the state in Redis is not the one this run left; find out what changed it before you run again"


def _text(item: Any) -> str:
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


def _pairs(items: Sequence[Any]) -> dict[str, str]:
    return {_text(items[i]): _text(items[i + 1]) for i in range(0, len(items), 2)}
