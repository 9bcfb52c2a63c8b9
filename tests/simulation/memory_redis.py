"""A Redis in this process, with what txbatch asks of one: some twenty commands, and functions.

It is made for simulation: a copy of all it holds costs next to nothing, and no bytes travel. What a command does is
written here a second time, so test_memory_redis.py compares it with other servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import redis
from redis._parsers.base import BaseParser

from tests.simulation.lua_library import LuaLibrary

Unit = tuple[tuple[bytes, ...], ...]
"""The commands of one write, as an append-only file has them: what changes nothing is not there."""
Content = dict[bytes, Any]
"""Key -> a dict (hash), bytes (string), set, `SortedSet`, list or `Stream`. Never changed once it was handed out."""
INFO = {
    "redis_version": "7.0.15",
    "redis_mode": "standalone",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "evicted_keys": 0,
}
NOW_MS = 1_780_000_000_000
"""The time, in milliseconds since 1970."""
WRONG_TYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"


class SortedSet(dict[bytes, float]):
    """Member -> score."""


class Stream(dict[bytes, dict[bytes, bytes]]):
    """Id -> fields; the last id stays when its entry goes."""

    def __init__(self, entries: Stream | tuple[()] = ()) -> None:
        super().__init__(entries)
        self.last_id: bytes = getattr(entries, "last_id", b"0-0")


class MemoryRedis:
    """The server.

    Attributes:
        info: what INFO answers.
        denied: commands that the user may not run.
    """

    def __init__(self) -> None:
        self.info: dict[str, Any] = dict(INFO)
        self.denied: set[str] = set()
        self._data: Content = {}
        self._own: set[bytes] = set()
        self._commands: list[tuple[bytes, ...]] = []
        self._units: list[Unit] = []
        self._library = LuaLibrary(self._call_from_lua, self._may_run)

    def content(self) -> Content:
        """All it holds, for `become`."""
        self._own.clear()  # from now on a value is copied before it is changed
        return dict(self._data)

    def become(self, content: Content) -> None:
        """Holds this from now on, and nothing else."""
        self._data = dict(content)
        self._own.clear()
        self._units = []

    def written(self) -> list[Unit]:
        """The writes since this was last asked."""
        units, self._units = self._units, []
        return units

    def applied(self, content: Content, unit: Unit) -> Content:
        """What the commands of a write make of this content; the server holds that, too."""
        self.become(content)
        for name, *given in unit:
            _COMMANDS[name.decode()](self, *given)
        return self.content()

    def flush_library(self) -> None:
        """Forgets all functions."""
        self._library.flush()

    def hash(self, key: str) -> dict[bytes, bytes]:
        """A hash, to be looked at."""
        value = self._data.get(key.encode())
        return value if type(value) is dict else {}

    def execute_command(self, *arguments: Any) -> Any:
        """One command from a client.

        Raises:
            redis.ResponseError: as a server's error.
        """
        name, *given = [item if isinstance(item, bytes) else str(item).encode() for item in arguments]
        command = name.decode().upper()
        if command in self.denied:
            raise _error(f"NOPERM User default has no permissions to run the '{command.lower()}' command")
        if command in ("FCALL", "FCALL_RO"):
            return self._call_function(given)
        if command == "INFO":
            return dict(self.info)
        if command == "FUNCTION":
            return self._function(given)
        if command == "SCAN":
            return 0, [key for key in self._data if fnmatchcase(key.decode(), given[2].decode())]
        if command == "CLIENT":
            return b"OK" if given[0] == b"SETNAME" else b""
        if command not in _COMMANDS:
            raise _error(f"ERR unknown command '{command}', with args beginning with: ")
        reply = self._run(command, tuple(given))
        self._end_unit()
        if isinstance(reply, tuple):
            raise _error(reply[1].decode())
        return reply

    def _run(self, command: str, given: tuple[bytes, ...]) -> Any:
        """One command from a client or a function; notes it if it changes something."""
        reply = _COMMANDS[command](self, *given)
        if type(reply) is not tuple and (command in _CHANGE or (command in _CHANGE_IF_ANY and reply)):
            self._commands.append((command.encode(), *given))
        return reply

    def _end_unit(self) -> None:
        if self._commands:
            self._units.append(tuple(self._commands))
            self._commands = []

    def _call_function(self, given: list[bytes]) -> Any:
        function, count = given[0], int(given[1])
        if not self._library.has(function):
            raise _error("ERR Function not found")
        message, reply = self._library.run(function, given[2 : 2 + count], given[2 + count :])
        self._end_unit()
        if message:
            raise _error(message)
        return reply

    def _function(self, given: list[bytes]) -> Any:
        if given[0] == b"LIST":
            return [[b"library_code", self._library.code]] if self._library.code else []
        if given[0] == b"FLUSH":
            self._library.flush()
            return b"OK"
        self._library.load(given[-1])
        return b"txbatch"

    def _may_run(self, *words_and_key: bytes) -> bool:
        return b"|".join(words_and_key[:-1]).decode() not in self.denied

    def _call_from_lua(self, command: bytes, *arguments: Any) -> Any:
        reply = self._run(command.decode(), tuple([_text(argument) for argument in arguments]))
        if reply is None:
            return False
        if command == b"TYPE":
            return self._library.status(reply)
        if isinstance(reply, list):
            return self._library.table([False if item is None else item for item in reply])
        return reply

    # What a key holds -----------------------------------------------------------------------------------------

    def get(self, key: bytes, kind: type) -> Any:
        """What a key holds, None if it does not exist, a tuple with an error if it is of another kind."""
        value = self._data.get(key)
        return value if value is None or type(value) is kind else (None, WRONG_TYPE)

    def change(self, key: bytes, kind: type[Any]) -> Any:
        """The same, made if it does not exist, to be changed in place."""
        value = self._data.get(key)
        if value is None:
            value = self._data[key] = kind()
        elif type(value) is not kind:
            return (None, WRONG_TYPE)
        elif key not in self._own:
            value = self._data[key] = kind(value)
        self._own.add(key)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Replaces what a key holds."""
        self._data[key] = value

    def kind(self, key: bytes) -> str:
        """As TYPE names it."""
        return _KINDS[type(self._data[key])] if key in self._data else "none"

    def delete(self, keys: Iterable[bytes]) -> int:
        """Deletes keys; returns how many there were."""
        return sum(self._data.pop(key, None) is not None for key in keys)

    def delete_if_empty(self, key: bytes) -> None:
        """Ends a key whose last element was removed."""
        if not self._data[key]:
            del self._data[key]

    def count(self, keys: Iterable[bytes]) -> int:
        """How many of the keys exist."""
        return sum(key in self._data for key in keys)


_KINDS: dict[type, str] = {dict: "hash", bytes: "string", set: "set", SortedSet: "zset", list: "list", Stream: "stream"}


def _text(argument: Any) -> bytes:
    return argument if type(argument) is bytes else b"%.17g" % argument


@lru_cache(maxsize=64)
def _parsed(message: str) -> redis.ResponseError:
    error: redis.ResponseError = BaseParser.parse_error(message)
    return error


def _error(message: str) -> redis.ResponseError:
    """As redis-py makes it of the server's message."""
    found = _parsed(message)
    return type(found)(*found.args)


def _changed(server: MemoryRedis, key: bytes, kind: type, change: Callable[[Any], Any]) -> Any:
    """Changes what a key holds; returns how many elements that has added."""
    found = server.change(key, kind)
    if type(found) is tuple:
        return found
    before = len(found)
    change(found)
    return len(found) - before


def _pairs(items: tuple[bytes, ...]) -> Iterable[tuple[bytes, bytes]]:
    return zip(items[::2], items[1::2], strict=True)


def _hincrby(server: MemoryRedis, key: bytes, name: bytes, amount: bytes) -> Any:
    found = server.change(key, dict)
    if type(found) is tuple:
        return found
    number = int(found.get(name, b"0")) + int(amount)
    found[name] = b"%d" % number
    return number


def _removed(server: MemoryRedis, key: bytes, kind: type, names: Iterable[bytes]) -> Any:
    found = server.get(key, kind)
    if found is None or type(found) is tuple:
        return 0 if found is None else found
    found, count = server.change(key, kind), 0
    for name in names:
        if name in found:
            found.remove(name) if kind is set else found.pop(name)
            count += 1
    server.delete_if_empty(key)
    return count


def _looked_up(server: MemoryRedis, key: bytes, kind: type, look_up: Callable[[Any], Any]) -> Any:
    found = server.get(key, kind)
    if type(found) is tuple:
        return found
    return look_up(kind() if found is None else found)


def _zadd(server: MemoryRedis, key: bytes, *pairs: bytes) -> Any:
    option = pairs[0] if pairs[0] in (b"GT", b"LT") else b""

    def change(found: SortedSet) -> None:
        for score, member in _pairs(pairs[bool(option) :]):
            given, held = float(score), found.get(member)
            if held is None or not option or (given > held if option == b"GT" else given < held):
                found[member] = given

    return _changed(server, key, SortedSet, change)


def _between(items: list[Any], first: bytes, last: bytes) -> list[Any]:
    """The items from one place to another, both included; negative places count from the end."""
    start, end = (place if place >= 0 else place + len(items) for place in (int(first), int(last)))
    return items[max(start, 0) : max(end + 1, 0)]


def _zremrangebyrank(server: MemoryRedis, key: bytes, first: bytes, last: bytes) -> Any:
    members = _looked_up(
        server,
        key,
        SortedSet,
        lambda found: _between(sorted(found, key=lambda member: (found[member], member)), first, last),
    )
    return members if type(members) is tuple else _removed(server, key, SortedSet, members)


def _ltrim(server: MemoryRedis, key: bytes, first: bytes, last: bytes) -> Any:
    found = server.get(key, list)
    if found is None or type(found) is tuple:
        return True if found is None else found
    kept = server.change(key, list)
    kept[:] = _between(list(kept), first, last)
    server.delete_if_empty(key)
    return True


def _pexpireat(server: MemoryRedis, key: bytes, expires_ms: bytes) -> Any:
    """The clock stands still, so a key goes at once or never."""
    if int(expires_ms) <= NOW_MS:
        return server.delete([key])
    return server.count([key])


def _hpexpireat(server: MemoryRedis, key: bytes, expires_ms: bytes, *rest: bytes) -> Any:
    """As `_pexpireat`, of fields; `rest` is FIELDS, their number, and the fields."""
    found = server.get(key, dict)
    if found is None or type(found) is tuple:
        return [-2 for _ in rest[2:]] if found is None else found
    has_passed = int(expires_ms) <= NOW_MS
    replies = [-2 if field not in found else 2 if has_passed else 1 for field in rest[2:]]
    if has_passed:
        _removed(server, key, dict, rest[2:])
    return replies


def _push(server: MemoryRedis, key: bytes, values: tuple[bytes, ...], *, is_left: bool) -> Any:
    added = _changed(server, key, list, lambda found: found.insert(0, *values) if is_left else found.extend(values))
    return added if type(added) is tuple else len(server.get(key, list))


def _xadd(server: MemoryRedis, key: bytes, entry_id: bytes, *pairs: bytes) -> Any:
    found = server.change(key, Stream)
    if type(found) is tuple:
        return found
    found[entry_id] = dict(_pairs(pairs))
    found.last_id = entry_id
    return entry_id


def _xtrim(server: MemoryRedis, key: bytes, _: bytes, most: bytes) -> Any:
    found = server.get(key, Stream)
    if found is None or type(found) is tuple:
        return 0 if found is None else found
    found = server.change(key, Stream)
    gone = list(found)[: max(0, len(found) - int(most))]
    for entry_id in gone:
        del found[entry_id]
    return len(gone)


def _set(server: MemoryRedis, key: bytes, value: bytes) -> Any:
    server.put(key, value)
    return True  # as redis-py has it


def _in_range(found: SortedSet, low: bytes, high: bytes) -> list[tuple[float, bytes]]:
    """(score, member) of those between two bounds as ZRANGEBYSCORE takes them, in the order of a server."""
    least, most = map(_bound, (low, high))
    return sorted(
        (score, member)
        for member, score in found.items()
        if (least < score if low.startswith(b"(") else least <= score)
        and (score < most if high.startswith(b"(") else score <= most)
    )


def _bound(text: bytes) -> float:
    """A bound is read up to its first NUL, and nothing is 0."""
    return float(text.removeprefix(b"(").partition(b"\0")[0] or 0)


def _zrangebyscore(server: MemoryRedis, key: bytes, low: bytes, high: bytes, *options: bytes) -> Any:
    assert options[:3] == (b"WITHSCORES", b"LIMIT", b"0"), options

    def page(found: SortedSet) -> list[bytes | None]:
        chosen = _in_range(found, low, high)[: int(options[3])]
        return [item for score, member in chosen for item in (member, _score(score))]

    return _looked_up(server, key, SortedSet, page)


def _zremrangebyscore(server: MemoryRedis, key: bytes, low: bytes, high: bytes) -> Any:
    members = _looked_up(server, key, SortedSet, lambda found: [member for _, member in _in_range(found, low, high)])
    return members if type(members) is tuple else _removed(server, key, SortedSet, members)


def _score(score: float | None) -> bytes | None:
    return None if score is None else b"%.17g" % score


_CHANGE = frozenset({"HINCRBY", "HPEXPIREAT", "HSET", "LPUSH", "LTRIM", "RPUSH", "SET", "XADD", "ZADD"})
"""Change something whenever they are called, or are taken to: LTRIM and ZADD repeat what is there already."""
_CHANGE_IF_ANY = frozenset(
    {"DEL", "HDEL", "PEXPIREAT", "SADD", "SREM", "UNLINK", "XTRIM", "ZREM", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE"}
)
"""Change something unless they answer 0."""

_COMMANDS: dict[str, Callable[..., Any]] = {
    "DEL": lambda server, *keys: server.delete(keys),
    "EXISTS": lambda server, *keys: server.count(keys),
    "GET": lambda server, key: server.get(key, bytes),
    "HDEL": lambda server, key, *fields: _removed(server, key, dict, fields),
    "HEXISTS": lambda server, key, field: _looked_up(server, key, dict, lambda found: int(field in found)),
    "HGET": lambda server, key, field: _looked_up(server, key, dict, lambda found: found.get(field)),
    "HGETALL": lambda server, key: _looked_up(
        server, key, dict, lambda found: [item for pair in found.items() for item in pair]
    ),
    "HINCRBY": _hincrby,
    "HLEN": lambda server, key: _looked_up(server, key, dict, len),
    "HMGET": lambda server, key, *fields: _looked_up(
        server, key, dict, lambda found: [found.get(field) for field in fields]
    ),
    "HPEXPIREAT": _hpexpireat,
    "HSET": lambda server, key, *pairs: _changed(server, key, dict, lambda found: found.update(_pairs(pairs))),
    "LPUSH": lambda server, key, value: _push(server, key, (value,), is_left=True),
    "LRANGE": lambda server, key, first, last: _looked_up(
        server, key, list, lambda found: _between(list(found), first, last)
    ),
    "LTRIM": _ltrim,
    "PEXPIREAT": _pexpireat,
    "PTTL": lambda server, key: 10_000 if server.count([key]) else -2,  # only readers' pauses are asked for
    "RPUSH": lambda server, key, *values: _push(server, key, values, is_left=False),
    "SADD": lambda server, key, *members: _changed(server, key, set, lambda found: found.update(members)),
    "SET": _set,
    "SMISMEMBER": lambda server, key, *members: _looked_up(
        server, key, set, lambda found: [int(member in found) for member in members]
    ),
    "SREM": lambda server, key, *members: _removed(server, key, set, members),
    "TYPE": lambda server, key: server.kind(key).encode(),
    "UNLINK": lambda server, *keys: server.delete(keys),
    "XADD": _xadd,
    "XINFO": lambda server, _, key: _looked_up(
        server, key, Stream, lambda found: [b"last-generated-id", found.last_id]
    ),
    "XTRIM": _xtrim,
    "ZADD": _zadd,
    "ZCARD": lambda server, key: _looked_up(server, key, SortedSet, len),
    "ZCOUNT": lambda server, key, low, high: _looked_up(
        server, key, SortedSet, lambda found: len(_in_range(found, low, high))
    ),
    "ZMSCORE": lambda server, key, *members: _looked_up(
        server, key, SortedSet, lambda found: [_score(found.get(member)) for member in members]
    ),
    "ZRANGEBYSCORE": _zrangebyscore,
    "ZREM": lambda server, key, *members: _removed(server, key, SortedSet, members),
    "ZREMRANGEBYRANK": _zremrangebyrank,
    "ZREMRANGEBYSCORE": _zremrangebyscore,
}


def dump_of(server: MemoryRedis) -> Content:
    """Every key with its type and content, as `tests.support.stores.builders.dump` tells of other servers."""

    def ordered(value: Any) -> Any:
        if type(value) is Stream:
            return list(value.items())
        return sorted(value.items(), key=lambda item: (item[1], item[0])) if type(value) is SortedSet else value

    return {key: (_KINDS[type(value)].encode(), ordered(value)) for key, value in server.content().items()}
