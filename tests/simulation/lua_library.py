"""Runs the function library as a server does, without the server: its Lua code, on a store in this process.

The code is the real one. Only what Redis itself does around it is written here: the table `redis`, arguments and
replies. test_memory_redis.py compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from weakref import WeakMethod

from lupa import lua51

RedisCall = Callable[..., Any]
"""(command, key, arguments…) -> what Lua gets: bytes, a number, a list, or False for nothing; or (None, error)."""

_HOST = rb"""
local call, may_run = ...

local function redis_call(...)
  local reply, message = call(...)
  if message then
    error({err = message}, 0)
  end
  return reply
end

local function redis_pcall(...)
  local reply, message = call(...)
  return message and {err = message} or reply
end

local function error_reply(message)
  return {err = message}
end

-- Runs the library's code, and returns its functions by name.
local function load(chunk)
  local functions = {}
  local redis = {call = redis_call, pcall = redis_pcall, error_reply = error_reply, acl_check_cmd = may_run}
  redis.register_function = function(given)
    functions[given.function_name] = given.callback
  end
  setfenv(chunk, setmetatable({redis = redis}, {__index = _G}))
  chunk()
  return functions
end

local function returned(succeeded, reply)
  if not succeeded then
    return type(reply) == 'table' and reply.err or 'ERR ' .. tostring(reply), false
  elseif reply.err then
    return reply.err, false
  end
  return '', true, unpack(reply)
end

-- Calls a function: a message, whether it succeeded, and the items of its reply.
local function run(callback, keys, argv)
  return returned(pcall(callback, keys, argv))
end

return load, run
"""


class LuaLibrary:
    """One server's library: a load begins with fresh caches, as on a server.

    Args:
        call: what ``redis.call`` does.
        may_run: what ``redis.acl_check_cmd`` answers: (words of a command, key) -> whether the caller may.
    """

    def __init__(self, call: RedisCall, may_run: Callable[..., bool]) -> None:
        self._runtime = _runtime()
        # Lua's collector knows nothing of Python's: were these not weak, neither would ever free a server
        self._load, self._run = self._runtime.execute(_HOST, _weak(call), _weak(may_run))
        self._functions: dict[bytes, Any] = {}
        self.code = b""

    def load(self, code: bytes) -> None:
        """Replaces the library by this code."""
        self._functions = dict(self._load(_chunk(code)).items())
        self.code = code

    def flush(self) -> None:
        """Forgets the library."""
        self._functions, self.code = {}, b""

    def has(self, function: bytes) -> bool:
        """Whether the library has a function of this name."""
        return function in self._functions

    def run(self, function: bytes, keys: Sequence[bytes], arguments: Sequence[bytes]) -> tuple[str, list[Any]]:
        """Calls a function.

        Returns:
            An error message, empty if there was none, and the items of the reply.
        """
        table = self._runtime.table_from
        message, _, *items = self._run(self._functions[function], table(keys), table(arguments))
        return message.decode("utf-8", "replace"), [None if item is False else item for item in items]

    def table(self, items: Sequence[Any]) -> Any:
        """A list, as Lua gets it."""
        return self._runtime.table_from(items)

    def status(self, text: bytes) -> Any:
        """A status reply, as Lua gets it."""
        return self._runtime.table_from({b"ok": text})


def _weak(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that does not keep its object alive."""
    reference = WeakMethod(method)

    def call(*arguments: Any) -> Any:
        alive = reference()
        assert alive is not None, "a server that is gone was called"
        return alive(*arguments)

    return call


@cache
def _runtime() -> Any:
    """One interpreter a process: the library keeps nothing in its globals."""
    return lua51.LuaRuntime(encoding=None, unpack_returned_tuples=True)


@cache
def _chunk(code: bytes) -> Any:
    """The compiled code; each time it runs it makes functions and caches of its own."""
    return _runtime().compile(re.sub(rb"\A#![^\n]*", b"", code))
