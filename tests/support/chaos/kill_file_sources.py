"""Reads files in every format while the driver is killed again and again; the answers are exact each time.

    python -m tests.support.chaos.kill_file_sources --events 60000 --kills 5
    python -m tests.support.chaos.kill_file_sources --form growing --files 220

The last one feeds a folder while it is followed: the driver is killed or drained by SIGTERM at random moments, and
started again, until every file has been written; no file may be skipped, whatever its name.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.support.chaos.jobs import FORBIDDEN_WORDS, Job, Site, await_true, print_summary
from tests.support.sources.page_events import Truth, is_exact
from tests.support.topologies.page_sums import TOPOLOGY_ID

Event = tuple[str, str, int | None]
ROWS = 250
FILES = 6
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
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _price(cents: int | None) -> str | None:
    return None if cents is None else f"{cents // 100}.{cents % 100:02}"


def in_zstd(events: list[Event]) -> bytes:
    packed: bytes = pa.compress(as_json(events), "zstd", asbytes=True)
    return packed


FORMS: dict[str, tuple[str, Callable[[list[Event]], bytes]]] = {
    "json": ("json", as_json),
    "gzip": ("json", lambda events: gzip.compress(as_json(events))),
    "zstd": ("json", in_zstd),
    "csv": ("csv", as_csv),
    "parquet": ("parquet", as_parquet),
}


@dataclass
class Outcome:
    """What came of it."""

    story: list[str] = field(default_factory=list)
    is_exact: bool = False
    said: dict[str, Any] = field(default_factory=dict)
    leftovers: list[int] = field(default_factory=list)

    def is_good(self) -> bool:
        return self.is_exact and not self.leftovers


def site_of(folder: Path, form: str, events: Path, timeout_s: float, **more: str) -> Site:
    given = {"input": f"{events}/*.events", "form": form, "rows": str(ROWS)} | more
    parameters = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    arguments = ["tests.support.topologies.page_sums:topology", *parameters, "--max-pending", "16"]
    return Site(folder, TOPOLOGY_ID, arguments, timeout_s)


def kill_source(folder: Path, form: str, *, events: int, kills: int, seed: int, timeout_s: float) -> Outcome:
    """Writes events in one form, reads them under fire, and compares with what was counted as they were made."""
    draw, truth = random.Random(seed), Truth()
    told, content_of = FORMS[form]
    (folder / "events").mkdir(parents=True)
    for number in range(FILES):
        part = events_of(draw, events // FILES)
        truth.take(part)
        (folder / "events" / f"{number}.events").write_bytes(content_of(part))
    site = site_of(folder, told, folder / "events", timeout_s)
    outcome = Outcome()
    try:
        total = -(-(events // FILES * FILES) // ROWS)
        for number in range(kills):
            target = int((number + draw.uniform(0.3, 0.9)) * total / (kills + 1))
            outcome.story.append(_kill_on_the_way(site, target, draw.uniform(0.0, 0.1), timeout_s))
        said = site.finish()
        outcome.said = {name: said[name] for name in ("last_txid", "committed", "tuples", "seconds")}
        await_true(lambda: not site.leftovers(), 30.0)
        outcome.leftovers = site.leftovers()
        outcome.is_exact = is_exact(site.data_dir, truth)
        _refuse_tracebacks(site)
    finally:
        site.close()
    return outcome


def _kill_on_the_way(site: Site, target: int, delay_s: float, timeout_s: float) -> str:
    """Kills a driver shortly after a transaction was committed."""
    job = site.start()
    await_true(lambda: not job.is_running() or (site.committed() or 0) > target, timeout_s)
    await_true(lambda: not job.is_running(), delay_s)
    committed = site.committed()
    if not job.is_running():
        raise AssertionError(f"the driver had ended before it was killed:\n{job.complaint()}")
    job.kill()
    return f"killed after {time.monotonic() - job.started_s:.1f} s, txid {committed} committed"


def feed(folder: Path, draw: random.Random, truth: Truth, files: int) -> Iterator[None]:
    """Writes one file a turn, under a name that sorts anywhere, and gives it that name when it is complete."""
    names = [f"{number:04}" for number in range(files)]
    draw.shuffle(names)
    for name in names:
        part = events_of(draw, draw.randint(1, 600))
        truth.take(part)
        path = folder / f"{name}.part"
        content = as_json(part)
        path.write_bytes(gzip.compress(content) if draw.random() < 0.5 else content)
        path.rename(folder / f"{name}.events")
        yield


def stop_growing(folder: Path, *, files: int, stops: int, seed: int, timeout_s: float) -> Outcome:
    """Feeds a folder that is followed, while its driver is drained or killed again and again."""
    draw, truth, outcome = random.Random(seed), Truth(), Outcome()
    (folder / "events").mkdir(parents=True)
    site = site_of(folder, "json", folder / "events", timeout_s, follow="yes")
    try:
        feeding = feed(folder / "events", draw, truth, files)
        for number in range(stops):
            job = site.start()
            share = (files - 10) // stops
            for _ in range(share // 2):
                next(feeding, None)
            _await_a_commit(site, job, feeding, timeout_s)
            for _ in range(share - share // 2):
                next(feeding, None)
                time.sleep(draw.uniform(0.0, 0.05))
            outcome.story.append(_stop(job, is_drained=number % 2 == 0, timeout_s=timeout_s))
        for _ in feeding:
            pass
        job = site.start()
        expected = sum(truth.views.values())
        await_true(lambda: not job.is_running() or _seen(site) == expected, timeout_s)
        outcome.story.append(_stop(job, is_drained=True, timeout_s=timeout_s))
        await_true(lambda: not site.leftovers(), 30.0)
        outcome.leftovers = site.leftovers()
        outcome.is_exact = is_exact(site.data_dir, truth)
        outcome.said = {"files": len(list((folder / "events").iterdir())), "events": expected}
        _refuse_tracebacks(site)
    finally:
        site.close()
    return outcome


def _await_a_commit(site: Site, job: Job, feeding: Iterator[None], timeout_s: float) -> None:
    """Returns once a job has committed something of its own, for which it is fed one file more."""
    await_true(lambda: not job.is_running() or site.committed() is not None, timeout_s)
    before = site.committed() or 0
    next(feeding, None)
    await_true(lambda: not job.is_running() or (site.committed() or 0) > before, timeout_s)


def _stop(job: Job, *, is_drained: bool, timeout_s: float) -> str:
    after_s = time.monotonic() - job.started_s
    if not is_drained:
        job.kill()
        return f"killed after {after_s:.1f} s"
    job.signal(signal.SIGTERM)
    code = job.wait(timeout_s)
    if code != DRAINED:
        raise AssertionError(f"a drain ended with code {code}:\n{job.complaint()}")
    return f"drained after {after_s:.1f} s"


def _seen(site: Site) -> int:
    found = site.snapshot("HVALS", "views")
    return sum(map(int, found[1])) if found else 0


def _refuse_tracebacks(site: Site) -> None:
    for job in site.jobs:
        for word in FORBIDDEN_WORDS:
            if word in job.complaint():
                raise AssertionError(f"a job showed a traceback:\n{job.complaint()}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--form", choices=(*FORMS, "growing"), action="append")
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--files", type=int, default=220)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=300.0)
    options = parser.parse_args()
    is_good = True
    for form in options.form or (*FORMS, "growing"):
        started_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="txbatch-chaos-") as temporary:
            given: dict[str, Any] = {"seed": options.seed, "timeout_s": options.timeout_s}
            if form == "growing":
                outcome = stop_growing(Path(temporary), files=options.files, stops=2 * options.kills, **given)
            else:
                outcome = kill_source(Path(temporary), form, events=options.events, kills=options.kills, **given)
        is_good = is_good and outcome.is_good()
        print_summary(
            f"{form}, seed {options.seed}",
            {
                **{f"stop {number}": story for number, story in enumerate(outcome.story, 1)},
                "last run": outcome.said,
                "answers": "exactly those counted independently" if outcome.is_exact else "WRONG",
                "processes left": outcome.leftovers or "none",
                "seconds": round(time.monotonic() - started_s, 1),
            },
        )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
