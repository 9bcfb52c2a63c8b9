"""What was counted of events of visitors while they were made, and what a server holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.support.topologies.page_sums import TOPOLOGY_ID


@dataclass
class Truth:
    """What was counted while the events were made."""

    views: Counter[str] = field(default_factory=Counter)
    cents: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)

    def take(self, events: list[tuple[str, str, int | None]]) -> None:
        for user, page, cents in events:
            self.views[page] += 1
            self.cents[page] += cents or 0
            self.users.add(user)


def stored(client: Any) -> Truth:
    """Returns a server's answers."""
    views, cents = (client.hgetall(f"{{{TOPOLOGY_ID}}}:{name}") for name in ("views", "revenue_cents"))
    users = {user.decode() for user in client.smembers(f"{{{TOPOLOGY_ID}}}:users")}
    return Truth(_counter(views), _counter(cents), users)


def _counter(found: dict[bytes, bytes]) -> Counter[str]:
    return Counter({name.decode(): int(value) for name, value in found.items()})
