"""Sums events in files of every format, and in a folder that grows while it is followed."""

from __future__ import annotations

import gzip
import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import redis

from tests.support.chaos.jobs import Job, Kill, Site, await_true
from tests.support.chaos.killed.case import Case
from tests.support.sources.page_events import Truth, stored
from tests.support.topologies.page_sums import TOPOLOGY_ID

Event = tuple[str, str, int | None]
ROWS, FILES = 250, 6
DRAINED = 0


def events_of(draw: random.Random, count: int) -> list[Event]:
    return [
        (
            f"user {draw.randrange(5000)}",
            f"/page,\n{draw.randrange(300)}",
            draw.randrange(1, 9999) if draw.random() < 0.3 else None,
        )
        for _ in range(count)
    ]


def as_json(events: list[Event]) -> bytes:
    return b"".join(
        json.dumps({"user": user, "page": page, "price": _price(cents)}).encode() + b"\r\n"
        for user, page, cents in events
    )


def as_csv(events: list[Event]) -> bytes:
    rows = [f'{_price(cents) or ""},"{page}",{user}\n' for user, page, cents in events]
    return "".join(["price,page,user\n", *rows]).encode()


def as_parquet(events: list[Event]) -> bytes:
    sink = pa.BufferOutputStream()
    users, pages, cents = zip(*events, strict=True)
    prices = pa.array([None if each is None else Decimal(each) / 100 for each in cents], pa.decimal128(12, 2))
    pa.parquet.write_table(pa.table({"user": users, "page": pages, "price": prices}), sink, row_group_size=1700)
    return bytes(sink.getvalue().to_pybytes())


def _price(cents: int | None) -> str | None:
    return None if cents is None else f"{cents // 100}.{cents % 100:02}"


FORMS: dict[str, tuple[str, Callable[[list[Event]], bytes]]] = {
    "json": ("json", as_json),
    "gzip": ("json", lambda events: gzip.compress(as_json(events))),
    "zstd": ("json", lambda events: bytes(pa.compress(as_json(events), "zstd", asbytes=True))),
    "csv": ("csv", as_csv),
    "parquet": ("parquet", as_parquet),
}
"""Form of the files -> the reader, and what makes their content."""


class EventFiles(Case):
    """Files of one form.

    Args:
        form: one of `FORMS`.
    """

    size_of, default_size = "events", 60_000

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float, *, form: str) -> None:
        super().__init__(folder, size, seed, timeout_s)
        self.truth, self.events = Truth(), folder / "events"
        self.events.mkdir()
        reader, self._content_of = FORMS[form]
        self.site = self._site(reader, follow="no")
        self.total = -(-(size // FILES * FILES) // ROWS)
        self._fill()

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        found = stored(client)
        yield from (f"{name} differ" for name in ("views", "cents", "users") if self._differs(found, name))

    def _differs(self, found: Truth, name: str) -> bool:
        return bool(getattr(found, name) != getattr(self.truth, name))

    def _fill(self) -> None:
        for number in range(FILES):
            part = events_of(self.draw, self.size // FILES)
            self.truth.take(part)
            (self.events / f"{number}.events").write_bytes(self._content_of(part))

    def _site(self, reader: str, *, follow: str) -> Site:
        given = {"input": f"{self.events}/*.events", "form": reader, "rows": ROWS, "follow": follow}
        return self.site_of(TOPOLOGY_ID, "tests.support.topologies.page_sums:topology", given)


class GrowingFolder(EventFiles):
    """A folder that is followed and fed: its driver is drained and killed in turn; no file may be skipped."""

    size_of, default_size = "files", 220

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float) -> None:
        super().__init__(folder, size, seed, timeout_s, form="json")
        self.site = self._site("json", follow="yes")
        self._feeding = self._feed()

    def under_fire(self, kills: int) -> list[Kill]:
        """Feeds half of a share of the files, awaits a commit, feeds the rest, and ends the driver."""
        done = []
        share = (self.size - 10) // max(1, kills)
        for number in range(kills):
            job = self.site.start()
            for _ in range(share // 2):
                next(self._feeding, None)
            self._await_a_commit(job)
            for _ in range(share - share // 2):
                next(self._feeding, None)
                time.sleep(self.draw.uniform(0.0, 0.05))
            is_drained, committed = number % 2 == 0, self.site.committed()
            self._end(job, is_drained=is_drained)
            moment = "drained" if is_drained else "killed"
            done.append(Kill(moment, time.monotonic() - job.started_s, committed, in_vain=False))
        return done

    def finish(self) -> dict[str, Any]:
        """Writes what is left, and drains one more run once it has read everything: by itself it never ends."""
        for _ in self._feeding:
            pass
        job, expected = self.site.start(), self.truth.views.total()
        await_true(lambda: not job.is_running() or self._seen() == expected, self.timeout_s)
        self._end(job, is_drained=True)
        return {"files": self.size, "events": expected}

    def _fill(self) -> None:
        """Writes nothing before the first run."""

    def _feed(self) -> Iterator[None]:
        """Writes one file a turn, under a name that sorts anywhere, and gives it that name when it is complete."""
        names = [f"{number:04}" for number in range(self.size)]
        self.draw.shuffle(names)
        for name in names:
            part = events_of(self.draw, self.draw.randint(1, 600))
            self.truth.take(part)
            path = self.events / f"{name}.part"
            content = as_json(part)
            path.write_bytes(gzip.compress(content) if self.draw.random() < 0.5 else content)
            path.rename(self.events / f"{name}.events")
            yield

    def _await_a_commit(self, job: Job) -> None:
        """Returns once a job has committed something of its own, for which it is fed one file more."""
        seen: list[int] = []

        def is_seen() -> bool:  # kept as it is seen: the former job's server may go away right after it has answered
            if (committed := self.site.committed()) is not None:
                seen.append(committed)
            return bool(seen)

        await_true(lambda: not job.is_running() or is_seen(), self.timeout_s)
        before = seen[-1] if seen else 0
        next(self._feeding, None)
        await_true(lambda: not job.is_running() or (self.site.committed() or 0) > before, self.timeout_s)

    def _end(self, job: Job, *, is_drained: bool) -> None:
        if not is_drained:
            job.kill()
            return
        job.signal(signal.SIGTERM)
        code = job.wait(self.timeout_s)
        assert code == DRAINED, f"a drain ended with code {code}:\n{job.complaint()}"

    def _seen(self) -> int:
        found = self.site.snapshot("HVALS", "views")
        return sum(map(int, found[1])) if found else 0
