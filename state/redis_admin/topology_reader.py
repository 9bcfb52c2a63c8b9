"""Reads about all topologies of a server, with plain commands that change nothing; the one reader for all displays.

It needs neither ownership nor the function library, so a read-only user is enough, and nothing is loaded into the
server.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from state.commits.dead_letters import DEAD_LETTERS_STATE, letter_of
from state.commits.quarantine import QuarantineRecord
from state.errors import StateRefusedError, TopologyError
from state.keys import CHAIN_SCOPE, Keys, parse_metadata_field
from state.metadata import checked_control, unpack_metadata
from state.printable import message_of
from state.records.durability import ServerDurability, durable_txids
from state.records.run_pulse import STORIES_FROM_FIELD, owners
from state.records.topology_overview import (
    BriefTransaction,
    LettersShown,
    ListedTopology,
    TopologyOverview,
    TransactionPage,
)
from state.records.transaction_history import RECEIPTS_KEPT, KnownTransaction, Receipt, parse_receipt, parse_record
from state.records.transaction_story import StoryChoice, story_of
from state.redis_admin.pulse import read_pulse
from state.redis_client.address import redact
from state.redis_client.connection import RedisConnection, connect, pairs_of, text_of, texts_by_name
from state.redis_client.presence import connected_runs, connected_topologies
from state.redis_owner.measured_durability import measure_durability
from state.redis_owner.slot import quarantined

ANSWER_TIMEOUT_S = 3.0
"""How long one answer may take; a person waits for it."""
RETRY_S = 0.5
PIECE = 500
"""Stories in one reply, so that a search never blocks a server that commits."""
CONTROL_PATTERN = "{*}:txbatch:control"
_CONTROL = re.compile(r"\{([^{}]*)\}:txbatch:control", re.DOTALL)


class TopologyReader:
    """Reads from one server; used by one thread at a time.

    Every call raises StateRefusedError if the server refuses a command, StateUnreachableError without an answer in
    time, and TopologyError if a topology id is not a valid name. The clock returns seconds since the epoch.
    """

    def __init__(self, connection: RedisConnection, *, clock: Callable[[], float] = time.time) -> None:
        self._connection, self._clock = connection, clock

    @property
    def server(self) -> str:
        return self._connection.server

    def topologies(self) -> list[ListedTopology]:
        connected, ids = Counter[str](), set()
        for node in self._connection.everywhere():
            connected += connected_topologies(node)
            keys = chain.from_iterable(node.scanned("SCAN", match=CONTROL_PATTERN))
            ids |= {named[1] for key in keys if (named := _CONTROL.fullmatch(text_of(key)))}
        return [self._listed(topology_id, connected[topology_id]) for topology_id in sorted(ids)]

    def overview(self, topology_id: str, *, with_samples: bool = True) -> TopologyOverview | None:
        """Returns the stored facts about a topology and its run's pulse; None if the topology is not stored.

        `with_samples` also reads the samples of the last minutes, and the server's durability.
        """
        keys, call = Keys(topology_id), self._connection.call
        control = checked_control(keys, texts_by_name(call("HGETALL", keys.control)))
        if not control:
            return None
        fence, committed = control.get("fence", ""), control.get("committed", "0")
        return TopologyOverview(
            topology_id=topology_id,
            at=self._clock(),
            committed_txid=int(committed),
            generation=control.get("generation", ""),
            fence=fence,
            topology=control.get("topology", ""),
            source_fingerprint=control.get("source_fingerprint", ""),
            metadata_count=int(call("HLEN", keys.metadata)),
            quarantined_count=int(call("HLEN", keys.quarantine)),
            last_receipt=parse_receipt(keys, _text_or_empty(call("HGET", keys.receipts, committed))),
            is_dropping="dropping" in control,
            durable=durable_txids(control),
            history_from=_number(control.get("history_from", "")),
            dead_letters=int(call("ZCARD", keys.state(DEAD_LETTERS_STATE))),
            pulse=owners(read_pulse(self._connection, keys, with_samples=with_samples), fence),
            connected=connected_runs(self._connection, keys),
            gives=self._durability() if with_samples else ServerDurability(),
        )

    def transaction(self, topology_id: str, txid: int) -> KnownTransaction | None:
        """Returns the record of a transaction, None if the topology is not stored.

        Metadata is read before the history: a commit may move it there meanwhile, so this order cannot miss it.
        """
        keys, call, name = Keys(topology_id), self._connection.call, str(txid)
        metadata, has_republication_mark = self._metadata(keys, txid)
        record = call("HGET", keys.history, name)
        receipt = call("HGET", keys.receipts, name)
        story = self._connection.call_or_none("HGET", keys.stories, name)
        is_quarantined = bool(int(call("HEXISTS", keys.quarantine, name)))
        committed, history_from, source = call("HMGET", keys.control, "committed", "history_from", "source_fingerprint")
        if committed is None:
            return None
        kept = None if record is None else parse_record(keys, txid, bytes(record))
        return KnownTransaction(
            txid=txid,
            committed_txid=_txid(keys, committed),
            history_from=None if history_from is None else _txid(keys, history_from),
            receipt=parse_receipt(keys, _text_or_empty(receipt)) if kept is None else kept.receipt,
            metadata=_of_sources(metadata if kept is None else {**kept.metadata, **metadata}),
            has_republication_mark=has_republication_mark,
            left_out={} if kept is None else kept.left_out,
            story=None if story is None else story_of(text_of(story)),
            is_quarantined=is_quarantined,
            source_fingerprint=_text_or_empty(source),
        )

    def transactions(
        self, topology_id: str, *, before: int | None = None, choice: StoryChoice = StoryChoice.ALL, limit: int = 50
    ) -> TransactionPage | None:
        """Returns committed transactions below `before`, the newest first; None if the topology is not stored.

        Without stories, every choice but `StoryChoice.ALL` finds nothing.
        """
        keys = Keys(topology_id)
        stored = self._connection.call("HMGET", keys.control, "committed", "history_from")
        if stored[0] is None:
            return None
        committed = _number(text_of(stored[0])) or 0
        first = self._first_kept(keys, committed, _text_or_empty(stored[1]))
        newest = committed if before is None else min(before - 1, committed)
        found = list(self._found(keys, range(newest, first - 1, -1), choice, limit + 1))
        next_before = found[limit - 1].txid if len(found) > limit else None
        return TransactionPage(committed, first, tuple(found[:limit]), next_before)

    def letters(self, topology_id: str, *, offset: int = 0, limit: int = 50) -> LettersShown:
        """Returns dead letters of a topology, the newest transactions first."""
        key = Keys(topology_id).state(DEAD_LETTERS_STATE)
        count = int(self._connection.call("ZCARD", key))
        last = str(offset + limit - 1)
        found = self._connection.call("ZREVRANGE", key, str(offset), last, "WITHSCORES")
        letters = tuple(letter_of(int(float(score)), bytes(member)) for member, score in pairs_of(found))
        return LettersShown(count, letters, offset)

    def quarantined(self, topology_id: str) -> list[QuarantineRecord]:
        """Returns the quarantined batches of a topology, by txid; their number is limited."""
        return quarantined(self._connection, Keys(topology_id))

    def close(self) -> None:
        self._connection.close()

    def _listed(self, topology_id: str, connected: int) -> ListedTopology:
        try:
            keys = Keys(topology_id)
            found = self._connection.call("HMGET", keys.control, "committed", "fence", "dropping")
            pulse = read_pulse(self._connection, keys)
        except (StateRefusedError, TopologyError) as error:  # no right to read its keys, or they are not txbatch's
            return ListedTopology(topology_id, connected=connected, fault=message_of(error.__cause__ or error))
        committed, fence = map(_text_or_empty, found[:2])
        return ListedTopology(topology_id, committed, fence, found[2] is not None, owners(pulse, fence), connected)

    def _metadata(self, keys: Keys, txid: int) -> tuple[dict[str, Any], bool]:
        """Returns scope -> stored metadata of a transaction, and whether it is marked as republished.

        The whole hash is only as large as a window. Notes, and the numbers of republished batches, are left out: they
        are the run's own, not part of a transaction.
        """
        stored = {
            text_of(name): bytes(value) for name, value in pairs_of(self._connection.call("HGETALL", keys.metadata))
        }
        own = {name: value for name, value in stored.items() if name.rpartition(":")[2] == str(txid)}
        by_scope = {parse_metadata_field(name)[0]: value for name, value in unpack_metadata(keys, own).items()}
        metadata = {scope: value for scope, value in by_scope.items() if not scope.startswith("note.")}
        return metadata, metadata.pop("replayed", None) is not None

    def _found(self, keys: Keys, txids: range, choice: StoryChoice, limit: int) -> Iterator[BriefTransaction]:
        """Yields the chosen transactions among these txids, at most `limit`."""
        piece = min(limit, PIECE) if choice is StoryChoice.ALL else PIECE
        for start in range(0, len(txids), piece):  # at most the whole history, which is bounded
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
        found = self._connection.call_or_none("HMGET", key, *map(str, txids)) if txids else None
        found = [None] * len(txids) if found is None else found
        return [(txid, None if text is None else text_of(text)) for txid, text in zip(txids, found, strict=True)]

    def _receipts(self, keys: Keys, txids: Sequence[int]) -> dict[int, Receipt]:
        if not txids:
            return {}
        found = self._connection.call("HMGET", keys.history, *map(str, txids))
        records = ((txid, bytes(record)) for txid, record in zip(txids, found, strict=True) if record is not None)
        return {txid: parse_record(keys, txid, record).receipt for txid, record in records}

    def _first_kept(self, keys: Keys, committed: int, history_from: str) -> int:
        stories_from = self._connection.call_or_none("HGET", keys.pulse, STORIES_FROM_FIELD)
        kept = [_number(history_from), _number(_text_or_empty(stories_from))]
        first = min((txid for txid in kept if txid is not None), default=committed - RECEIPTS_KEPT + 1)
        return max(1, min(first, committed + 1))

    def _durability(self) -> ServerDurability:
        try:
            info = self._connection.call("INFO")
        except StateRefusedError:  # no right to call INFO, or a server in memory, which has none
            return ServerDurability()
        return measure_durability(self._connection, info)


def reader_at(url: str, *, revive: Callable[[], None] | None = None) -> TopologyReader:
    """Returns a reader of the server at this address, not connected yet; `revive` starts an ended private server."""
    client = connect(url, socket_timeout_s=ANSWER_TIMEOUT_S)
    return TopologyReader(RedisConnection(client, redact(url), timeout_s=RETRY_S, revive=revive))


def _of_sources(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata without the chains that shards need."""
    return {scope: value for scope, value in metadata.items() if scope != CHAIN_SCOPE}


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _text_or_empty(item: Any) -> str:
    return "" if item is None else text_of(item)


def _txid(keys: Keys, stored: Any) -> int:
    text = text_of(stored)
    if not text.isdecimal():
        raise StateRefusedError(
            f"key {keys.control!r} of topology {keys.topology_id!r} holds {text!r} where a txid belongs"
        )
    return int(text)
