"""fakeredis in place of a server, for topologies that run in one process for tests."""

from __future__ import annotations

from typing import Any

from state.errors import StateRefusedError
from state.troubles import Trouble


def in_memory_client() -> Any:
    """Returns a client of a fresh, empty server that lives as long as the client."""
    try:
        import fakeredis
    except ImportError as error:
        raise StateRefusedError(
            f"state in memory needs fakeredis with Lua ({error}); run pip install 'fakeredis[lua]', or give a redis_url"
        ).about(Trouble.EMBEDDED_SERVER) from error
    return fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
