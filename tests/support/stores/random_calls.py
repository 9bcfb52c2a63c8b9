"""Random calls of the whole function library: what drivers, readers and drops send, also repeated and altered.

A story is played once on fakeredis, through the classes that make these calls, and every command they send is noted;
the notes can then be sent as they are to any other server.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import redis

from state.attempt import TransactionAttempt
from state.commits.commit import Commit
from state.commits.dead_letters import add_letters
from state.commits.write_set import WriteSet
from state.errors import TransactionError
from state.redis_client.connection import RedisConnection
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from state.values.state_kind import VALUE_FIELD, StateKind
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import attempt, packed_letter
from tests.support.stores.random_writes import random_write_set

Call = tuple[Any, ...]
OWNERS = 2
STEPS = 12
PLANTED = (
    ("SET", "{ID}:h_int", "x"),
    ("HSET", "{ID}:h_int", "a", "1e3"),
    ("HSET", "{ID}:h_float", "a", "+1.50"),
    ("ZADD", "{ID}:z", "inf", "a"),
    ("DEL", "{ID}:txbatch:control"),
    ("SET", "{ID}:txbatch:control", "x"),
    ("HDEL", "{ID}:txbatch:control", "fence"),
    ("HSET", "{ID}:txbatch:control", "format", "1"),
    ("HSET", "{ID}:txbatch:control", "committed", "3"),
    ("HSET", "{ID}:txbatch:control", "committed", "x"),
    ("HSET", "{ID}:txbatch:control", "revision", "1"),
    ("HSET", "{ID}:txbatch:control", "dropping", "1"),
    ("DEL", "{ID}:txbatch:metadata"),
    ("HSET", "{ID}:txbatch:receipts", "2", "x"),
    ("LPUSH", "{ID}:txbatch:lists", "x"),
    ("SET", "{ID}:txbatch:dead_letters", "x"),
)
"""What others do to the topology's keys."""


class NotingClient:
    """A client that notes what it sends.

    Args:
        inner: of the server that is really asked.

    Attributes:
        calls: every command, in order.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[Call] = []

    def execute_command(self, *arguments: Any) -> Any:
        self.calls.append(arguments)
        return self.inner.execute_command(*arguments)


class Story:
    """Two owners, a reader, a drop and a vandal on one topology.

    Args:
        seed: of everything; also names the topology.
        client: of the server it is first played on; it must hold the library.
    """

    def __init__(self, seed: int, client: Any) -> None:
        self._random = Random(f"{seed} story")
        self._client = NotingClient(client)
        self._topology_id = f"t{seed}"
        self._stores = [RedisStore("redis://noted", self._topology_id, client=self._client) for _ in range(OWNERS)]
        self._nonces = [f"{owner:032x}" for owner in range(OWNERS)]
        self._txid = 1

    def play(self) -> list[Call]:
        """Plays the story and returns every command that was sent."""
        actions = (
            *(self._commit,) * 6,
            *(self._metadata,) * 2,
            *(self._acquire,) * 2,
            self._ask,
            self._barrier,
            self._read,
            self._letters,
            self._drop,
            self._vandalise,
        )
        self._acquire()
        for _ in range(STEPS):
            with suppress(TransactionError, redis.RedisError, ValueError):
                self._random.choice(actions)()
            if self._random.random() < 0.4:
                self._again()
        return self._client.calls

    def _acquire(self) -> None:
        owner = self._random.randrange(OWNERS)
        if self._random.random() < 0.7:
            self._nonces[owner] = f"{self._random.getrandbits(128):032x}"
        self._stores[owner].acquire(
            nonce=self._nonces[owner],
            new_generation=f"{self._random.getrandbits(128):032x}",
            topology=self._random.choice(["one", "one", "one", "another"]),
            source_fingerprint=self._random.choice(["source", "source", "source", "other"]),
            accepted=self._stores[owner].look() if self._random.random() < 0.5 else None,
        )

    def _commit(self) -> None:
        random = self._random
        first = max(1, self._txid + random.choice([0] * 8 + [-1, 1]))
        group = tuple(attempt(first + i, random.randint(1, 2)) for i in range(random.randint(1, 3)))
        metadata = {f"p:{group[0].txid}": random.randint(0, 9)} if random.random() < 0.3 else {}
        write_set = random_write_set(random) if random.random() < 0.9 else WriteSet()
        told = random.choice([None, None, None, max(0, first - 2)])
        if random.random() < 0.3:
            self._refuse(write_set, group)
        reply = random.choice(self._stores).commit(Commit(group, write_set, metadata, (f"p:{first - 1}",), told))
        if reply.status == "OK":
            self._txid = group[-1].txid + 1

    def _refuse(self, write_set: WriteSet, group: tuple[TransactionAttempt, ...]) -> None:
        """Adds dead letters to a commit, and takes away some of the earlier ones, perhaps one that is not there."""
        letter = packed_letter(self._txid)
        page = self._stores[0].dead_letters.page(limit=3)
        members = [*(one.member for one in page.letters), b"1.000009:gone"]
        taken = self._random.sample(members, self._random.choice([0, 0, 0, 1])) if len(members) > 1 else []
        letters = [(each.txid, [(1, [letter] * self._random.randint(0, 2))]) for each in group]
        add_letters(write_set, letters, self._random.choice([2, 9, 100]), taken=taken)

    def _letters(self) -> None:
        letters = self._random.choice(self._stores).dead_letters
        page = letters.page(limit=self._random.randint(1, 3))
        if self._random.random() < 0.6:
            generation = self._random.choice([page.generation, page.generation, "0" * 32])
            letters.drop(until_txid=self._random.randint(1, self._txid), generation=generation)

    def _metadata(self) -> None:
        fields = [f"{scope}:{self._txid + self._random.randint(0, 2)}" for scope in self._random.sample("pqr", 2)]
        forgotten = [f"p:{self._txid - 1}"] if self._random.random() < 0.3 else []
        self._random.choice(self._stores).store_metadata(dict.fromkeys(fields, self._txid), forgotten)

    def _ask(self) -> None:
        store = self._random.choice(self._stores)
        self._random.choice([store.confirm, store.last_group, store.look, store.check_server])()

    def _barrier(self) -> None:
        self._random.choice(self._stores).note_durable(self._random.randint(0, self._txid))

    def _read(self) -> None:
        connection = RedisConnection(self._client, "noted", timeout_s=1.0)
        nonce = self._random.choice(self._nonces)
        reader = RedisReader("redis://noted", self._topology_id, nonce=nonce, connection=connection)
        name, kind, fields = self._random.choice(
            [
                ("h_int", StateKind.HASH, ["a", "b"]),
                ("z", StateKind.SORTED_SET, ["a", "c"]),
                ("s", StateKind.SET, ["b", "nobody"]),
                ("v", StateKind.VALUE, [VALUE_FIELD]),
                ("h_int", StateKind.SET, ["a"]),
            ]
        )
        reader.read(name, kind, fields, self._txid - 1)

    def _drop(self) -> None:
        if self._random.random() < 0.3:
            admin_of(self._random.choice(self._stores)).drop()
            self._txid = 1

    def _vandalise(self) -> None:
        command, key, *arguments = self._random.choice(PLANTED)
        self._client.execute_command(command, key.replace("{ID}", f"{{{self._topology_id}}}"), *arguments)

    def _again(self) -> None:
        """Sends an earlier call of a function, as it was or with one argument altered, missing or too many."""
        random = self._random
        calls = [call for call in self._client.calls[-8:] if is_of_function(call)]
        if not calls:
            return
        call = list(random.choice(calls))
        first = 3 + int(call[2])  # after the keys
        if random.random() < 0.6 and len(call) > first:
            place = random.randrange(first, len(call))
            match random.randrange(4):
                case 0:
                    del call[place:]
                case 1:
                    call.append(call[place])
                case 2:
                    call[place] = random.choice(["", "x", "-1", "0", "9007199254740993", "1e3", b"\x00\xff"])
                case _:
                    call[place] = call[random.randrange(first, len(call))]
        with suppress(redis.RedisError):
            self._client.execute_command(*call)


def is_of_function(call: Call) -> bool:
    """Whether a command calls a function that a server in memory can answer; it has no rights that could be lacking."""
    return str(call[0]).startswith("FCALL") and not call[1].endswith("_lacking")


def sent(client: Any, calls: list[Call]) -> list[tuple[Call, Any]]:
    """Sends commands as they are; returns each call of a function with its reply, an error as its class."""
    replies: list[tuple[Call, Any]] = []
    for call in calls:
        reply: Any
        try:
            reply = client.execute_command(*call)
        except redis.RedisError as error:
            reply = type(error)
        if str(call[0]).startswith("FCALL"):
            replies.append((call, _scores_as_numbers(call, reply)))
    return replies


def _scores_as_numbers(call: Call, reply: Any) -> Any:
    """Servers differ in how many digits of a score they print."""
    if call[1].endswith("_read") and "zset" in call and isinstance(reply, list):
        return [*reply[:2], *(score and float(score) for score in reply[2:])]
    return reply
