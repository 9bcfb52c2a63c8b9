"""Events of visitors in files of two formats, what was counted while they were made, and what a server holds."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.support.topologies.page_sums import TOPOLOGY_ID

FILES = 8
PAGES = 500
USERS = 100_000
ROW_GROUP_ROWS = 25_000


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


def make_events(count: int, seed: int) -> Iterator[list[tuple[str, str, int | None]]]:
    """The events of each file: visitor, page, and what was paid, in cents."""
    draw = random.Random(seed)
    for number in range(FILES):
        size = count * (number + 1) // FILES - count * number // FILES
        yield [
            (
                f"user-{draw.randrange(USERS)}",
                f"/page/{int(PAGES * draw.random() ** 2)}",
                draw.randrange(100, 20_000) if draw.random() < 0.1 else None,
            )
            for _ in range(size)
        ]


def write_events(folder: Path, count: int, seed: int) -> Truth:
    """Writes every file in both forms."""
    truth = Truth()
    for number, events in enumerate(make_events(count, seed)):
        truth.take(events)
        lines = (
            f'{{"ts":{1_700_000_000 + index},"user":"{user}","page":"{page}","price":{_price(cents)},'
            f'"agent":"Mozilla/5.0 (X11; Linux x86_64)","status":200}}\n'
            for index, (user, page, cents) in enumerate(events)
        )
        with gzip.open(folder / f"{number}.json.gz", "wt", compresslevel=6, encoding="utf-8") as file:
            file.writelines(lines)
        users, pages, cents = zip(*events, strict=True) if events else ((), (), ())
        prices = pa.array(cents, pa.int64()).cast(pa.decimal128(21, 0))
        hundred = pa.scalar(100, pa.decimal128(3, 0))
        columns = {"user": users, "page": pages, "price": pa.compute.divide(prices.cast(pa.decimal128(25, 2)), hundred)}
        table = pa.table(columns)
        place = table.schema.get_field_index("price")
        table = table.set_column(place, "price", table.column("price").cast(pa.decimal128(12, 2)))
        pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=ROW_GROUP_ROWS)
    return truth


def _price(cents: int | None) -> str:
    return "null" if cents is None else f"{cents // 100}.{cents % 100:02}"


def pattern(folder: Path, form: str) -> str:
    """The files of one form."""
    return str(folder / ("*.json.gz" if form == "json" else "*.parquet"))


def stored(client: Any) -> Truth:
    """Returns a server's answers."""
    views, cents = (client.hgetall(f"{{{TOPOLOGY_ID}}}:{name}") for name in ("views", "revenue_cents"))
    users = {user.decode() for user in client.smembers(f"{{{TOPOLOGY_ID}}}:users")}
    return Truth(_counter(views), _counter(cents), users)


def _counter(found: dict[bytes, bytes]) -> Counter[str]:
    return Counter({name.decode(): int(value) for name, value in found.items()})
