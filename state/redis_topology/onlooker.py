"""Looks at all topologies of a server for a dashboard, with plain commands that change nothing.

It needs neither ownership nor the function library, so a read-only user is enough, and looking loads nothing into the
server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from state.commits.dead_letters import DEAD_LETTERS_STATE, letter_of
from state.commits.quarantine import QuarantineRecord, unpack_record
from state.errors import StateRefusedError
from state.keys import Keys
from state.records.durability import ServerDurability, durable_txids
from state.records.run_pulse import STORIES_FROM_FIELD, owners
from state.records.topology_overview import BriefTransaction, LettersShown, TopologyOverview, TransactionPage
from state.records.transaction_history import RECEIPTS_KEPT, Receipt, parse_record
from state.records.transaction_story import StoryChoice
from state.redis_client.address import redact
from state.redis_client.connection import RedisConnection, connect, pairs_of, text_of, texts_by_name
from state.redis_client.presence import connected_runs
from state.redis_server.measured_durability import measure_durability
from state.redis_topology.history import KnownTransaction, known_transaction
from state.redis_topology.listing import ListedTopology, list_topologies
from state.redis_topology.pulse import read_pulse

ANSWER_TIMEOUT_S = 3.0
"""How long one answer may take: a reader waits for it, and asks again a little later."""
RETRY_S = 0.5
PIECE = 500
"""Stories in one reply, so that a search never blocks a server that commits."""


class Onlooker:
    """Looks at one server; used by one thread at a time.

    Args:
        connection: to the server.
        clock: seconds since the epoch.
    """

    def __init__(self, connection: RedisConnection, *, clock: Callable[[], float] = time.time) -> None:
        self._connection, self._clock = connection, clock

    @property
    def server(self) -> str:
        """The server's address without credentials."""
        return self._connection.server

    def topologies(self) -> list[ListedTopology]:
        """Returns the topologies of the server, by id.

        Raises:
            StateRefusedError: the server refuses a command.
            StateUnreachableError: no answer in time.
        """
        return list_topologies(self._connection)

    def overview(self, topology_id: str, *, with_samples: bool = True) -> TopologyOverview | None:
        """Returns what is known of a topology, None if it is not stored.

        Args:
            topology_id: of the topology.
            with_samples: read the samples of the last minutes, and what the server can lose.

        Raises:
            TopologyError: the id is not a valid name.
            StateRefusedError, StateUnreachableError: as `topologies`.
        """
        keys, call = Keys(topology_id), self._connection.call
        control = texts_by_name(call("HGETALL", keys.control))
        if not control:
            return None
        fence = control.get("fence", "")
        return TopologyOverview(
            topology_id=topology_id,
            at=self._clock(),
            committed_txid=_number(control.get("committed", "0")),
            fence=fence,
            generation=control.get("generation", ""),
            description=control.get("topology", ""),
            source=control.get("source_fingerprint", ""),
            is_dropping="dropping" in control,
            durable=durable_txids(control),
            history_from=_number(control.get("history_from", "")),
            quarantined=int(call("HLEN", keys.quarantine)),
            dead_letters=int(call("ZCARD", keys.state(DEAD_LETTERS_STATE))),
            pulse=owners(read_pulse(self._connection, keys, with_samples=with_samples), fence),
            connected=connected_runs(self._connection, keys),
            can_lose=self._can_lose() if with_samples else "",
        )

    def transaction(self, topology_id: str, txid: int) -> KnownTransaction | None:
        """Returns what is known of a transaction, None if the topology is not stored.

        Raises:
            TopologyError, StateRefusedError, StateUnreachableError: as `overview`.
        """
        return known_transaction(self._connection, Keys(topology_id), txid)

    def transactions(
        self, topology_id: str, *, before: int | None = None, choice: StoryChoice = StoryChoice.ALL, limit: int = 50
    ) -> TransactionPage | None:
        """Returns committed transactions, the newest first; None if the topology is not stored.

        Args:
            topology_id: of the topology.
            before: only lower txids.
            choice: which ones. Without stories, all but `StoryChoice.ALL` find nothing.
            limit: most transactions to return.

        Raises:
            TopologyError, StateRefusedError, StateUnreachableError: as `overview`.
        """
        keys = Keys(topology_id)
        stored = self._connection.call("HMGET", keys.control, "committed", "history_from")
        if stored[0] is None:
            return None
        committed = _number(text_of(stored[0])) or 0
        first = self._first_kept(keys, committed, "" if stored[1] is None else text_of(stored[1]))
        newest = committed if before is None else min(before - 1, committed)
        found = list(self._found(keys, range(newest, first - 1, -1), choice, limit + 1))
        next_before = found[limit - 1].txid if len(found) > limit else None
        return TransactionPage(committed, first, tuple(found[:limit]), next_before)

    def letters(self, topology_id: str, *, offset: int = 0, limit: int = 50) -> LettersShown:
        """Returns dead letters of a topology, the newest transactions first.

        Raises:
            TopologyError, StateRefusedError, StateUnreachableError: as `overview`.
        """
        key = Keys(topology_id).state(DEAD_LETTERS_STATE)
        count = int(self._connection.call("ZCARD", key))
        last = str(offset + limit - 1)
        found = self._connection.call("ZREVRANGE", key, str(offset), last, "WITHSCORES")
        letters = tuple(letter_of(int(float(score)), bytes(member)) for member, score in pairs_of(found))
        return LettersShown(count, letters, offset)

    def quarantined(self, topology_id: str) -> list[QuarantineRecord]:
        """Returns the quarantined batches of a topology, by txid; their number is limited.

        Raises:
            TopologyError, StateRefusedError, StateUnreachableError: as `overview`.
        """
        keys = Keys(topology_id)
        found = self._connection.call("HGETALL", keys.quarantine)
        records = [unpack_record(keys, text_of(txid), bytes(packed)) for txid, packed in pairs_of(found)]
        return sorted(records, key=lambda record: record.txid)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _found(self, keys: Keys, txids: range, choice: StoryChoice, limit: int) -> Iterator[BriefTransaction]:
        """Yields the chosen ones of some txids, at most `limit`."""
        piece = limit if choice is StoryChoice.ALL else PIECE
        for start in range(0, len(txids), piece):  # at most the history, which is bounded
            asked = txids[start : start + piece]
            texts = self._texts(keys.stories, asked)
            stories = [(txid, None if text is None else choice.chosen(text)) for txid, text in texts]
            chosen = [each for each in stories if choice is StoryChoice.ALL or each[1] is not None][:limit]
            receipts = self._receipts(keys, [txid for txid, _ in chosen])
            yield from (BriefTransaction(txid, receipts.get(txid), story) for txid, story in chosen)
            limit -= len(chosen)
            if limit <= 0:
                return

    def _texts(self, key: str, txids: Sequence[int]) -> list[tuple[int, str | None]]:
        found = self._connection.call("HMGET", key, *map(str, txids)) if txids else []
        return [(txid, None if text is None else text_of(text)) for txid, text in zip(txids, found, strict=True)]

    def _receipts(self, keys: Keys, txids: Sequence[int]) -> dict[int, Receipt]:
        if not txids:
            return {}
        found = self._connection.call("HMGET", keys.history, *map(str, txids))
        records = ((txid, bytes(record)) for txid, record in zip(txids, found, strict=True) if record is not None)
        return {txid: parse_record(keys, txid, record).receipt for txid, record in records}

    def _first_kept(self, keys: Keys, committed: int, history_from: str) -> int:
        told_from = self._connection.call("HGET", keys.pulse, STORIES_FROM_FIELD)
        kept = [_number(history_from), _number("" if told_from is None else text_of(told_from))]
        first = min((txid for txid in kept if txid is not None), default=committed - RECEIPTS_KEPT + 1)
        return max(1, min(first, committed + 1))

    def _can_lose(self) -> str:
        try:
            info = self._connection.call("INFO")
        except StateRefusedError:  # no right to ask, or a server in memory, which has no INFO
            return ServerDurability().can_lose()
        return measure_durability(self._connection, info).can_lose()


def onlooker_at(url: str, *, revive: Callable[[], None] | None = None) -> Onlooker:
    """Returns an onlooker of the server at this address; it is not connected yet.

    Args:
        url: of the server.
        revive: starts a private server again that has ended.

    Raises:
        TopologyError: the address is malformed.
    """
    client = connect(url, socket_timeout_s=ANSWER_TIMEOUT_S)
    return Onlooker(RedisConnection(client, redact(url), timeout_s=RETRY_S, revive=revive))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
