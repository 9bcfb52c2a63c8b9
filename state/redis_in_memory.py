"""A server that is not one: fakeredis, for topologies run in one process by tests."""

from __future__ import annotations

from typing import Any

from state.errors import StateRefusedError


def in_memory_client() -> Any:
    """A client of a fresh, empty server that lives and dies with it.

    Raises:
        StateRefusedError: fakeredis is not installed.
    """
    try:
        import fakeredis
    except ImportError as error:
        raise StateRefusedError(
            f"state in memory needs fakeredis with Lua ({error}); pip install 'txbatch[local]', or give a redis_url"
        ) from error
    return fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
