"""How the owner writes a topology's state over many slots: stage, decide, apply.

Home, the topology's own slot, keeps the order, the receipts and everything else that `RedisStore` writes, except the
user's states; N shards keep those. For each group

1. every shard *stages* its part: checks it as a commit would, and stores it where no reader looks;
2. home *decides* the group by an ordinary commit without states. This call is the commit;
3. every shard *applies* the part staged under the digest that home has decided.

The digest of a group, its *chain*, covers all its parts and the chain below. Home stores it as metadata of the group's
last txid, a shard stores it when it applies its part: equal chains mean equal histories.

A start fences home and then every shard, and relies on the replies to these calls, never on a later read. A shard that
is behind the decision applies its staged part. A home that has lost decisions recovers them from a shard: every part
carries the decision, as the very call sent to home. A shard that has lost even its staged part gets it from the shard
that keeps a copy, see copies.py. The model docs/model/shards.pml checks the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack

from state.codec import digest64, pack, pack_exact, unpack
from state.commits.commit import Commit, CommitReply, CommitStatus
from state.commits.spread import split
from state.commits.write_set import WriteSet
from state.errors import FencedError, StateRefusedError
from state.fault_points import reached
from state.keys import CHAIN_SCOPE, is_chain, metadata_field, parse_metadata_field
from state.records.durability import Durability, DurabilityLevel, DurabilityReport
from state.records.topology_overview import FoundTopology
from state.redis_owner.arguments import CommitTooLargeError, commit_arguments
from state.redis_owner.fitness import ServerWatch
from state.redis_owner.slot import ConnectionOptions
from state.redis_owner.store import ACQUIRE_TRIES, RedisStore
from state.redis_shards.asking import Asking, Result, asked_together
from state.redis_shards.copies import PartCopy, copy_keepers
from state.redis_shards.decisions import Decision, decided_after
from state.redis_shards.shard import DECISIONS_KEPT, Shard, ShardProgress, ShardWrites
from state.troubles import Trouble

Given = TypeVar("Given")
UNKNOWN_SOURCE = "unknown: an earlier version kept it at home only, and home has lost it"
"""Stands for a lost fingerprint: no input has this one, so the user has to accept the given input."""


def _counter_of(fence: str) -> int:
    return int(fence.partition(":")[0] or 0)


class ShardedStore(RedisStore):
    """The only writer of a topology over several slots; constructed and used like a `RedisStore`.

    Args:
        shard_count: how many shards the topology has.
        shard_clients: clients to use instead of connecting, one for each shard; by default home's client, if one is
            given.
        at_once: whether shards are called concurrently; by default unless clients are given (tests).
    """

    def __init__(
        self,
        url: str,
        topology_id: str,
        *,
        shard_count: int,
        shard_clients: Sequence[Any] | None = None,
        at_once: bool | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        super().__init__(url, topology_id, **options)
        client: Any = options.get("client")
        clients: Sequence[Any] = shard_clients if shard_clients is not None else [client] * shard_count
        if shard_clients is None and hasattr(client, "owner_of"):  # each follows its own slot
            clients = [client.owner_of(self.keys.shard(number).control) for number in range(shard_count)]
        self._shards = [
            Shard(url, self.keys, number, **{**options, "client": each}) for number, each in enumerate(clients)
        ]
        has_threads = clients[0] is None if at_once is None else at_once
        self._threads = ThreadPoolExecutor(shard_count, "txbatch-shard") if has_threads else None
        self._places: list[Hashable] = []
        self._wards: list[list[int]] = []  # whose parts each shard keeps, given the shards' places
        self._chain = ""
        self._metadata: dict[str, Any] = {}  # home's metadata
        self._uncarried: set[str] = set()  # fields of it in none of the decisions that shards keep

    def check_server(
        self, asked: Durability | None = None, *, expires: bool = True, fields_expire: bool = False
    ) -> None:
        super().check_server(asked, expires=expires, fields_expire=fields_expire)
        for shard in self._shards:
            try:
                shard.check_server(asked, expires=expires, fields_expire=fields_expire)
            except StateRefusedError as error:
                if error.trouble is not Trouble.SERVER_RIGHTS:
                    raise
                raise StateRefusedError(
                    f"this user lacks rights on {shard.name}; grant what `txbatch acl {self.keys.topology_id} --shards "
                    f"{len(self._shards)}` prints; {error}"
                ).about(Trouble.SERVER_RIGHTS) from error

    @property
    def durability(self) -> DurabilityReport:
        """The durability that the run waits for, and the data that home's or a shard's server can lose most easily."""
        reports = [super().durability, *(shard.durability for shard in self._shards)]
        return next((each for each in reports if not each.server_can_lose.startswith("nothing")), reports[0])

    def watch(self, clock: Callable[[], float]) -> ServerWatch:
        watch = super().watch(clock)
        watch.others = tuple(shard.watch(clock) for shard in self._shards)
        return watch

    def existing_states(self, names: Iterable[str], with_parts: Iterable[str] = ()) -> list[str]:
        names, with_parts = list(names), list(with_parts)
        found = [*super().existing_states(names, with_parts)]
        for shard in self._shards:
            found += shard.existing_states(names, with_parts)
        return sorted(set(found))

    def has_records(self) -> bool:
        return super().has_records() or any(shard.has_records() for shard in self._shards)

    def look(self) -> FoundTopology | None:
        self._each(Shard.refuse_taken)
        return super().look()

    def acquire(self, **asked: Any) -> FoundTopology:
        """Becomes the owner of home and of every shard, and brings all to one transaction; see `RedisStore.acquire`.

        Raises:
            StateRefusedError: a shard, or home, has lost more than the others can restore, or two have different
                histories.
        """
        if not super().has_records():  # its server came back without home: the shards know its generation and fence
            for shard in self._shards:
                life = shard.fields("generation", "fence")
                asked["new_generation"] = life.get("generation", asked["new_generation"])
                asked["above"] = max(asked.get("above", ""), life.get("fence", ""), key=_counter_of)
        for _ in range(ACQUIRE_TRIES):
            found = super().acquire(**asked)
            taken = self._each(partial(self._taken, found.topology))
            reached("shards.taken")
            standings = [standing for standing in taken if standing is not None]
            if len(standings) == len(taken):
                return self._recovered(found, standings)
            self._owned_reply("confirm", self.keys.control)  # or a newer run has fenced this one
            self._first_request += ACQUIRE_TRIES
        raise FencedError(self.keys.topology_id)

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        super().store_metadata(entries, forget)
        self._remember(entries, forget)

    def commit(self, commit: Commit) -> CommitReply:
        """Stages, decides and applies a group; see `RedisStore.commit`.

        Raises:
            StateRefusedError: also if a shard refuses its staged part after the decision; nothing is lost.
        """
        last, is_group = commit.attempts[-1].txid, len(commit.attempts) > 1
        try:
            write_sets = split(commit.write_set, len(self._shards))
            parts = [
                ShardWrites.of(shard.keys, write_set, is_group=is_group)
                for shard, write_set in zip(self._shards, write_sets, strict=True)
            ]
            chain = self._chain_of(commit, parts)
            decision = self._decision(self._decided(commit, chain), chain, last)
        except CommitTooLargeError as error:
            return CommitReply(CommitStatus.LIMIT, str(error))
        reached("shards.staging")
        kept, copies = decision.packed(), self._copies(chain, parts)
        staged = self._together(lambda shard: shard.stage(parts[shard.number], chain, last, kept, copies[shard.number]))
        reached("shards.staged")
        for reply in staged:
            if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
                return reply
        self._at_once(self._make_durable, self._by_server())
        reply = self._decide(decision)
        if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
            return reply
        reached("shards.applying")
        expired = self._together(lambda shard: shard.apply(chain, self._stored))
        reached("shards.applied")
        return replace(
            reply,
            expired_count=reply.expired_count + sum(expired),
            byte_count=reply.byte_count + sum(len(part.sections) for part in parts),
            busy_s=max(reply.busy_s, *(shard.busy_s for shard in self._shards)),
        )

    def _copies(self, chain: str, parts: Sequence[ShardWrites]) -> list[bytes]:
        """Returns the copies of others' parts for each shard to keep; a slot may have moved since the last group."""
        if self._places != (places := [shard.place for shard in self._shards]):
            self._places, self._wards = places, copy_keepers(places)
        return [
            PartCopy.all_packed([PartCopy(ward, chain, parts[ward].keys, parts[ward].sections) for ward in wards])
            for wards in self._wards
        ]

    def _make_durable(self, of_one_server: Sequence[Shard]) -> None:
        """Waits until staged parts are durable: replicas confirm each shard; a server's settings, all of its shards."""
        is_of_each = self._asked.level is DurabilityLevel.REPLICA
        for shard in of_one_server if is_of_each else of_one_server[:1]:
            shard.make_durable()

    def confirm(self) -> None:
        super().confirm()
        self._each(Shard.confirm)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        for shard in self._shards:
            shard.close()
        super().close()

    # Recovery at a start

    def _taken(self, topology: str, shard: Shard) -> ShardProgress | None:
        owned = self.ownership
        return shard.take(owned.fence, owned.generation, topology)

    def _recovered(self, found: FoundTopology, standings: Sequence[ShardProgress]) -> FoundTopology:
        """Brings home and shards to one transaction, by the replies to their takeovers."""
        self._metadata = dict(found.metadata)
        self._chain = str(found.metadata.get(metadata_field(CHAIN_SCOPE, found.committed_txid), ""))
        committed = found.committed_txid
        ahead = max(zip(standings, self._shards, strict=True), key=lambda pair: pair[0].committed)
        if ahead[0].committed > committed:
            committed = self._take_back(committed, *ahead)
            if committed != ahead[0].committed:
                raise self._apart(
                    f"{ahead[1].name} has applied txid {ahead[0].committed}, but has no decision about it"
                )
        behind: list[tuple[ShardProgress, Shard]] = []
        for standing, shard in zip(standings, self._shards, strict=True):
            if standing.committed < committed and self._chain and standing.staged_chain == self._chain:
                shard.ask(shard.apply(self._chain, self._stored))
            elif standing.committed < committed:
                behind.append((standing, shard))
            elif standing.chain != self._chain:
                raise self._apart(
                    f"{shard.name} has another history than home up to txid {committed}: one of their servers holds "
                    "what the other has never seen"
                )
        carried: dict[str, bytes] = {}
        for packed in self._shards[0].decisions():
            carried |= Decision.unpacked(packed).puts
        self._uncarried = {name for name, value in self._metadata.items() if carried.get(name) != pack_exact(value)}
        if behind:
            self._bring_forward(behind, committed, self._stored.topology)
        metadata = {name: value for name, value in self._metadata.items() if not is_chain(name)}
        return FoundTopology(committed, self._stored.source_fingerprint, self._stored.topology, metadata)

    def _bring_forward(self, behind: Sequence[tuple[ShardProgress, Shard]], committed: int, description: str) -> None:
        """Restores parts that shards have lost, from the copies of others."""
        for standing, shard in behind:
            if not standing.committed and (held := shard.unrecorded(description)):
                raise self._apart(
                    f"{shard.name} has lost its record, and holds {', '.join(map(repr, held))}: what was applied "
                    "there would be applied again"
                )
        lagging = {shard.number for _, shard in behind}
        whole = [shard for shard in self._shards if shard.number not in lagging]
        decisions = [Decision.unpacked(packed) for packed in whole[0].decisions()] if whole else []
        copies = {
            (each.number, each.chain): each
            for shard in self._shards
            for each in shard.copies()
            if each.number in lagging
        }
        for standing, shard in behind:
            lost = decided_after(standing, decisions)
            found = [copies[shard.number, each.chain] for each in lost if (shard.number, each.chain) in copies]
            if not lost or len(found) < len(lost) or lost[-1].last_txid != committed:
                raise self._apart(
                    f"{shard.name} has txid {standing.committed} and not what was decided up to {committed}: its "
                    "server has lost its last writes, and no other has kept them; durability fsync or replica prevents "
                    "that"
                )
            for decision, copy in zip(lost, found, strict=True):
                part = ShardWrites(copy.keys, copy.sections)
                reply = shard.ask(shard.stage(part, decision.chain, decision.last_txid, decision.packed()))
                if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
                    raise self._apart(f"{shard.name} refuses what it has lost ({reply.status}: {reply.detail})")
                shard.ask(shard.apply(decision.chain, self._stored))

    def _take_back(self, committed: int, standing: ShardProgress, shard: Shard) -> int:
        """Repeats at home the decisions that it has lost, as a shard keeps them; returns the last txid.

        Home thereby also recovers the input and topology of these decisions, which the run has yet to accept.
        """
        asked, described = self._to_store, standing.described
        self._to_store = replace(described, source_fingerprint=described.source_fingerprint or UNKNOWN_SOURCE)
        decisions = [each for each in map(Decision.unpacked, shard.decisions()) if each.last_txid > committed]
        for decision in decisions:
            reply = self._decide(decision)
            if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
                raise self._apart(
                    f"home of topology {self.keys.topology_id!r} has lost too much: it has txid {committed}, and "
                    f"{shard.name} gives back the last {DECISIONS_KEPT} groups only ({reply.status}: {reply.detail})"
                )
            committed = decision.last_txid
        self._to_store = asked
        return committed

    def _decide(self, decision: Decision) -> CommitReply:
        """Sends home the decision on a group, a new one or one that home has lost."""
        reply = self._committed(decision.keys, decision.arguments, decision.puts, decision.forgets)
        if reply.status in (CommitStatus.OK, CommitStatus.ALREADY):
            self._remember({field: unpack(value) for field, value in decision.puts.items()}, decision.forgets)
            self._uncarried -= decision.puts.keys()
            self._chain = decision.chain
        return reply

    def _apart(self, story: str) -> StateRefusedError:
        return StateRefusedError(
            f"{story}; restore home and all shards from one backup, or start over with "
            f"`txbatch drop {self.keys.topology_id}`"
        ).about(Trouble.REGRESSED)

    # A group's digest and decision

    def _chain_of(self, commit: Commit, parts: Sequence[ShardWrites]) -> str:
        """Returns the digest of a group's content, the same in every run."""
        txids = [commit.attempts[0].txid, commit.attempts[-1].txid]
        content = [pack([self._chain, *txids, list(part.keys)]) + part.sections for part in parts]
        return f"{digest64(*content):016x}"

    def _decided(self, commit: Commit, chain: str) -> Commit:
        """Returns the commit by which home decides a group: without states, but with the chain.

        Metadata up to the group that no decision carries yet is included once more, so that home can recover it.
        """
        last = commit.attempts[-1].txid
        former = {name for name in self._metadata if is_chain(name)}
        forget = tuple(dict.fromkeys([*commit.forget, *sorted(former)]))
        kept = {
            name: self._metadata[name]
            for name in sorted(self._uncarried)
            if parse_metadata_field(name)[1] <= last and name not in forget
        }
        metadata = {**kept, **commit.metadata, metadata_field(CHAIN_SCOPE, last): chain}
        return replace(commit, write_set=WriteSet(letters=commit.write_set.letters), metadata=metadata, forget=forget)

    def _decision(self, decided: Commit, chain: str, last_txid: int) -> Decision:
        puts = {field: pack_exact(value) for field, value in decided.metadata.items()}
        keys, arguments = commit_arguments(self.keys, decided, puts)
        return Decision(chain, last_txid, keys, arguments, puts, decided.forget)

    def _remember(self, puts: Mapping[str, Any], forgets: Iterable[str]) -> None:
        self._metadata.update(puts)
        self._uncarried |= puts.keys()
        for field in forgets:
            self._metadata.pop(field, None)
            self._uncarried.discard(field)

    def _together(self, ask: Callable[[Shard], Asking[Result]]) -> list[Result]:
        """Calls all servers concurrently, the shards of one server in one packet; raises the first error."""

        def asked(shards: Sequence[Shard]) -> list[tuple[int, Result]]:
            answers = asked_together([(shard.connection, ask(shard)) for shard in shards])
            return [(shard.number, answer) for shard, answer in zip(shards, answers, strict=True)]

        answered = dict(pair for pairs in self._at_once(asked, self._by_server()) for pair in pairs)
        return [answered[shard.number] for shard in self._shards]

    def _by_server(self) -> list[list[Shard]]:
        """Returns the shards grouped by server, as far as it is known."""
        found: dict[Hashable, list[Shard]] = {}
        for shard in self._shards:
            found.setdefault(shard.place, []).append(shard)
        return list(found.values())

    def _each(self, call: Callable[[Shard], Result]) -> list[Result]:
        """Calls every shard; raises the first error."""
        return self._at_once(call, self._shards)

    def _at_once(self, call: Callable[[Given], Result], each: Sequence[Given]) -> list[Result]:
        """Calls with each argument, concurrently if shards have separate connections; raises the first error."""
        if self._threads is None:
            return [call(given) for given in each]
        futures = [self._threads.submit(call, given) for given in each]
        errors = [future.exception() for future in futures]  # waits for all: no call is under way when this returns
        for error in errors:
            if error is not None:
                raise error
        return [future.result() for future in futures]
