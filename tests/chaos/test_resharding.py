"""``redis-cli --cluster reshard`` moves a topology's slot under writes to every kind of state: nothing tears."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from state.commits.commit import CommitStatus
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.redis_client.connection import pairs_of, text_of
from state.redis_owner.store import RedisStore
from state.redis_server.program import find_server_program
from state.values.state_kind import VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType
from tests.conftest import absent, redis_program
from tests.support.stores.builders import acquire, attempt, commit_of, writes
from tests.support.stores.moving_servers import ClusteredServers, await_

pytestmark = [pytest.mark.nightly, pytest.mark.redis, pytest.mark.chaos]
ROUNDS = int(os.environ.get("TXBATCH_RESHARD_ROUNDS", "2"))
"""Moves of the slot on each kind of server; 50 take twenty seconds."""
SLOT = 0
STAYS = Retention(expires_ms=4_102_444_800_000)
BEST, LAST = Retention(KeptEnd.HIGHEST, 5), Retention(KeptEnd.LAST, 5)
STR, INT, FLOAT = ValueType.STR, ValueType.INT, ValueType.FLOAT


class Books:
    """What the states have to hold, by Python's own means."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.counts, self.parts = Counter[str](), Counter[str]()
        self.members, self.names = set[str](), dict[str, str]()
        self.items, self.recent, self.scores, self.value = list[str](), list[str](), dict[str, float](), ""

    def next(self, txid: int) -> dict[str, Any]:
        """Notes a transaction, and returns its writes: sometimes it begins states again, sometimes it empties them."""
        random, text = self._random, f"{txid}"
        begins, empties = random.random() < 0.4, random.random() < 0.3
        changes: dict[str, StateWrites] = {"seen": writes(StateKind.HYPERLOGLOG, STR, puts={text: True})}
        self.counts[text[-1]] += 1
        changes["counts"] = writes(StateKind.HASH, INT, increments={text[-1]: 1})
        for name, items, kept in (("items", self.items, Retention()), ("recent", self.recent, LAST)):
            appended = [] if empties else [f"{text}.{n}" for n in range(3)]
            if begins or empties:
                items.clear()
            items.extend(appended)
            del items[: -kept.most or None if kept.most else 0]
            deletes = {VALUE_FIELD: True} if begins or empties else {}
            changes[name] = writes(StateKind.LIST, STR, deletes=deletes, appends=appended, retention=kept)
        gone = dict.fromkeys(self.members, True) if empties else {}
        self.members = set() if empties else self.members | {text[-2:]}
        puts = {} if empties else {text[-2:]: True}
        changes["members"] = writes(StateKind.SET, STR, puts=puts, deletes=gone)
        lost = dict.fromkeys(self.scores, True) if empties else {}
        if empties:
            self.scores.clear()
        else:
            self.scores[text] = float(txid)
            self.scores = dict(sorted(self.scores.items(), key=lambda each: -each[1])[:5])
        scored = {} if empties else {text: float(txid)}
        changes["scores"] = writes(StateKind.SORTED_SET, FLOAT, puts=scored, deletes=lost, retention=BEST)
        part = text[-1]
        if empties and self.parts[part]:
            self.parts[part] = 0
            changes[f"part:{part}"] = writes(StateKind.HASH, INT, deletes={"n": True}, retention=STAYS)
        else:
            self.parts[part] += 1
            changes[f"part:{part}"] = writes(StateKind.HASH, INT, increments={"n": 1}, retention=STAYS)
        self.value = "" if empties else text
        put: dict[str, Any] = {"deletes": {VALUE_FIELD: True}} if empties else {"puts": {VALUE_FIELD: text}}
        changes["value"] = writes(StateKind.VALUE, STR, retention=STAYS, **put)
        return changes

    def check(self, store: RedisStore) -> None:
        def held(command: str, name: str, *more: str) -> Any:
            return store._connection.call(command, store.keys.state(name), *more)

        assert {text_of(k): int(v) for k, v in pairs_of(held("HGETALL", "counts"))} == self.counts
        for name, items in (("items", self.items), ("recent", self.recent)):
            assert [text_of(each) for each in held("LRANGE", name, "0", "-1")] == items
        assert {text_of(each) for each in held("SMEMBERS", "members")} == self.members
        found = pairs_of(held("ZRANGE", "scores", "0", "-1", "WITHSCORES"))
        assert {text_of(k): float(v) for k, v in found} == self.scores
        for part in "0123456789":
            assert int(held("HGET", f"part:{part}", "n") or 0) == self.parts[part]
        assert text_of(held("GET", "value") or b"") == self.value


def reshard(cluster: ClusteredServers, topology_id: str) -> None:
    """Has the tool move the slot, which is the lowest of its node, and waits until all nodes agree."""
    tool = shutil.which("redis-cli") or absent("redis-cli on PATH")
    key = f"{{{topology_id}}}:"
    source = cluster.owner(key)
    target = next(each for each in cluster.primaries() if each is not source)
    asked = ["--cluster-from", cluster.id_of(source), "--cluster-to", cluster.id_of(target), "--cluster-slots", "1"]
    command = [tool, "--cluster", "reshard", f"127.0.0.1:{source.port}", *asked, "--cluster-yes"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout[-500:]
    assert cluster.owner(key) is target
    check = [*command[:2], "check", command[3]]
    await_("all agree", lambda: subprocess.run(check, capture_output=True, check=False).returncode == 0)


@pytest.mark.parametrize("server", ["redis", "valkey"])
@pytest.mark.timeout(1800)
def test_a_slot_that_a_tool_moves_tears_no_commit_whatever_it_writes(server: str) -> None:
    program = redis_program() if server == "redis" else find_server_program()
    with ClusteredServers(program, node_timeout_ms=5000) as cluster, ThreadPoolExecutor(1) as pool:
        topology_id = next(f"t{n}" for n in range(10**6) if cluster.slot_of(f"t{n}") == SLOT)
        store, books, txid = RedisStore(cluster.url, topology_id), Books(1), 0
        store.check_server()
        acquire(store)
        for _ in range(ROUNDS):
            moved = pool.submit(reshard, cluster, topology_id)
            left = 20
            while left:
                left -= moved.done()
                txid += 1
                store.store_metadata({f"coordinator:{txid}": [txid]}, [f"coordinator:{txid - 1}"])
                reply = store.commit(commit_of(WriteSet(books.next(txid)), attempt(txid)))
                assert reply.status in (CommitStatus.OK, CommitStatus.ALREADY), reply
            moved.result()
            store.confirm()
            books.check(store)
        assert store._connection.moves >= ROUNDS
        store.close()
