"""A process that is killed before or after each of its calls of the function library, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from state.redis_client.connection import RedisConnection


class KilledError(Exception):
    """The process ends here."""


def killed_everywhere(
    monkeypatch: pytest.MonkeyPatch, topology_id: str, act: Callable[[], object], check: Callable[[], None]
) -> int:
    """Acts until no call that names the topology's keys kills it, and checks after each death; returns their number."""
    function = RedisConnection.function
    for last in count(1):
        points = count(1)

        def dying(self: RedisConnection, *given: Any, points: Any = points, last: int = last, **more: Any) -> Any:
            is_own = any(str(each).startswith(f"{{{topology_id}}}") for each in given)
            if is_own and next(points) == last:
                raise KilledError
            reply = function(self, *given, **more)
            if is_own and next(points) == last:
                raise KilledError
            return reply

        with monkeypatch.context() as patched:
            patched.setattr(RedisConnection, "function", dying)
            try:
                act()
            except KilledError:
                pass
            else:
                return last - 1
        check()
    raise AssertionError
