"""A random program of function calls, drawn from a seed: what every server has to answer alike.

Two owners and a drop compete for one topology; some of their earlier calls are sent again, and now and then somebody
damages a key. What a server answered decides what is sent next, so servers that differ once differ in all that follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import redis

from state.commit import Commit
from state.errors import FencedError, TransactionError
from state.keys import Keys
from state.redis_connection import RedisConnection
from state.redis_drop import drop_topology
from state.redis_store import RedisStore
from state.write_set import VALUE_FIELD, StateKind, StateWrites, ValueType, WriteSet
from tests.support.stores.builders import attempt

TOPOLOGY_ID = "random"
KEYS = Keys(TOPOLOGY_ID)
INTEGERS = (1, -3, 127, -128, 128, 10**6, 2**52, -(2**53 - 1), 2**53 - 1)
FLOATS = (0.1, 0.2, -1.5, 1e23, 1e-7, 123456789.125)
TEXTS = ("", "a", "12", "1e3", "nan", "ä")
State = tuple[str, StateKind, ValueType]
STATES: tuple[State, ...] = (
    ("counts", StateKind.HASH, ValueType.INT),
    ("sums", StateKind.HASH, ValueType.FLOAT),
    ("texts", StateKind.HASH, ValueType.STR),
    ("total", StateKind.VALUE, ValueType.INT),
    ("ratio", StateKind.VALUE, ValueType.FLOAT),
    ("seen", StateKind.SET, ValueType.STR),
    ("scores", StateKind.SORTED_SET, ValueType.FLOAT),
    ("log", StateKind.LIST, ValueType.INT),
)
Answer = tuple[str, Any]
_PLACE = re.compile(r"^(user_function|\[string .*?\]):\d+: | script: .*", re.DOTALL)
"""Where in the library an error was raised, as each server tells it."""


def answers_of(client: Any, seed: int, count: int) -> list[Answer]:
    """Plays the program of a seed on an empty server.

    Args:
        client: of the server; answers bytes.
        seed: of the program.
        count: how many steps it has; most make one call.

    Returns:
        What was asked and answered, in order; errors as "CLASS message".
    """
    return _Program(client, Random(seed)).run(count)


class _Program:
    def __init__(self, client: Any, random: Random) -> None:
        self._client, self._random = client, random
        self._answers: list[Answer] = []
        self._sent: list[tuple[Any, ...]] = []
        self._stores = [RedisStore("redis://any", TOPOLOGY_ID, client=self) for _ in range(2)]
        self._next_txid = 1
        self._steps: list[tuple[int, Callable[[], Any]]] = [
            (2, self._acquire),
            (6, self._store_metadata),
            (14, self._commit),
            (2, self._repeat),
            (1, self._damage),
            (1, self._drop),
            (1, lambda: self._store().confirm()),
            (1, lambda: self._store().last_group()),
            (1, lambda: self._store().status()),
            (1, lambda: self._store().look()),
            (2, self._read),
        ]

    def run(self, count: int) -> list[Answer]:
        self._stores[0].check_server()
        self._acquire()
        weights = [weight for weight, _ in self._steps]
        for _ in range(count):
            _, step = self._random.choices(self._steps, weights)[0]
            try:
                step()
            except TransactionError as error:
                self._answers.append(("raised", type(error).__name__))
                if self._random.random() < 0.5:
                    step = self._acquire if isinstance(error, FencedError) else self._drop
                    with suppress(TransactionError):
                        step()
        return self._answers

    def execute_command(self, *arguments: Any) -> Any:
        """What the stores call."""
        if arguments[0] in ("INFO", "FUNCTION", "CLIENT"):
            return self._client.execute_command(*arguments)
        self._sent.append(arguments)
        try:
            reply = self._client.execute_command(*arguments)
        except redis.ResponseError as error:
            self._answers.append((str(arguments[1]), f"{type(error).__name__} {_PLACE.sub('', str(error))}"))
            raise
        self._answers.append((str(arguments[1]), _comparable(arguments, reply)))
        return reply

    def close(self) -> None:
        """The server's client is closed by whoever made it."""

    def _send(self, *arguments: Any) -> None:
        with suppress(redis.ResponseError):  # which is one of the answers
            self.execute_command(*arguments)

    def _store(self) -> RedisStore:
        return self._random.choice(self._stores)

    def _acquire(self) -> None:
        random = self._random
        store = self._store()
        found = store.look()
        acquired = store.acquire(
            nonce=f"{random.getrandbits(128):032x}",
            new_generation=f"{random.getrandbits(128):032x}",
            topology=random.choice(["one", "one", "another"]),
            source_fingerprint=random.choice(["input", "input", "another input"]),
            accepted=found if random.random() < 0.8 else None,
        )
        self._next_txid = acquired.committed_txid + 1

    def _store_metadata(self) -> None:
        random = self._random
        fields = {f"coordinator:{self._next_txid + ahead}": random.choice([None, 7, [1, 2]]) for ahead in range(3)}
        self._store().store_metadata(fields, forget=[f"coordinator:{max(1, self._next_txid - 1)}"])

    def _commit(self) -> None:
        random = self._random
        count = random.choice([1, 1, 1, 2, 5])
        first = self._next_txid + (random.choice([-1, 1, 3]) if random.random() < 0.1 else 0)
        attempts = tuple(attempt(txid, random.getrandbits(64)) for txid in range(max(1, first), max(1, first) + count))
        composed = WriteSet()
        states = self._some_states()
        for _ in attempts:
            composed.then(self._write_set(states))
        metadata = {f"p0:{attempts[-1].txid}": random.randrange(100)} if random.random() < 0.3 else {}
        reply = self._store().commit(Commit(attempts, composed, metadata, ("p0:1",) if metadata else ()))
        if reply.status == "OK":
            self._next_txid = attempts[-1].txid + 1

    def _some_states(self) -> list[State]:
        """States to write, at times not as they are declared elsewhere."""
        random = self._random
        return [
            (state[0], *random.choice(STATES)[1:]) if random.random() < 0.03 else state
            for state in random.sample(STATES, random.randint(0, 3))
        ]

    def _write_set(self, states: list[State]) -> WriteSet:
        found = WriteSet()
        for name, kind, value_type in states:
            writes = found.state(name, kind, value_type)
            for _ in range(self._random.randint(1, 4)):
                self._change(writes)
        return found

    def _change(self, writes: StateWrites) -> None:
        random = self._random
        kind, value_type = writes.kind, writes.value_type
        field = VALUE_FIELD if kind in (StateKind.VALUE, StateKind.LIST) else random.choice(["a", "b", "c", "ä", "1"])
        number = random.choice(FLOATS if value_type is ValueType.FLOAT else INTEGERS)
        draw = random.random()
        if draw < 0.2:
            writes.delete(field)
        elif kind is StateKind.LIST:
            writes.appends.append(number)
        elif kind is StateKind.SET:
            writes.put(field, True)
        elif value_type is ValueType.STR:
            writes.put(field, random.choice(TEXTS))
        elif draw < 0.5:
            writes.put(field, number)
        else:
            writes.increment(field, [number] if value_type is ValueType.FLOAT else number)

    def _repeat(self) -> None:
        """An earlier call arrives once more."""
        self._send(*self._random.choice(self._sent))

    def _damage(self) -> None:
        random = self._random
        control, counts = KEYS.control, KEYS.state("counts")
        self._send(
            *random.choice(
                [
                    ("HSET", control, "format", random.choice(["1", "2"])),
                    ("HSET", control, "revision", str(random.randrange(50))),
                    ("HDEL", control, random.choice(["fence", "generation", "metadata_sum", "committed"])),
                    ("HSET", counts, "a", random.choice(["text", "007", "9007199254740992", "5"])),
                    ("DEL", random.choice([control, KEYS.metadata, KEYS.receipts, counts])),
                    ("SET", random.choice([KEYS.metadata, KEYS.receipts, counts]), "a string"),
                ]
            )
        )

    def _drop(self) -> None:
        connection = RedisConnection(self, "any", timeout_s=1.0)
        drop_topology(connection, KEYS, nonce=f"{self._random.getrandbits(128):032x}")

    def _read(self) -> None:
        name, kind, _ = self._random.choice(STATES)
        if kind is not StateKind.LIST:
            fields = [VALUE_FIELD] if kind is StateKind.VALUE else ["a", "b", "missing"]
            key = KEYS.state(name)
            self._send("FCALL_RO", "txbatch_2_read", "2", KEYS.control, key, kind.value, *fields)


def _comparable(arguments: tuple[Any, ...], reply: Any) -> Any:
    """A reply without what servers do differently: the order of hashes, and how a score is written."""
    if isinstance(reply, tuple):
        return sorted(reply[1])  # of SCAN
    if not isinstance(reply, list):
        return reply
    function = str(arguments[1]).rpartition("_")[2]
    if function == "read" and arguments[5] == StateKind.SORTED_SET:
        return reply[:2] + [None if score is None else float(score) for score in reply[2:]]
    first = {"acquire": 8, "look": 4, "status": 2}.get(function, len(reply))
    pairs = reply[first:]
    return reply[:first] + sorted(zip(pairs[::2], pairs[1::2], strict=False))
