"""Plays one case at length::

python -m tests.support.chaos.killed word_count --size 50000000 --kills 10
python -m tests.support.chaos.killed page_views --size 1000000 --kills 3 --broker-kills 3
python -m tests.support.chaos.killed growing_folder --kills 10
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.chaos.jobs import print_summary
from tests.support.chaos.killed import source_sums
from tests.support.chaos.killed.case import Outcome, play
from tests.support.chaos.killed.event_files import FORMS, EventFiles, GrowingFolder
from tests.support.chaos.killed.ledger import Ledger
from tests.support.chaos.killed.orders import Orders, RepublishedOrders
from tests.support.chaos.killed.page_views import OpaqueViews, PageViews
from tests.support.chaos.killed.word_count import WordCount
from tests.support.kafka.broker import Broker

ON_A_BROKER: dict[str, Any] = {"page_views": PageViews, "opaque_views": OpaqueViews}
CASES: dict[str, Any] = {
    "word_count": partial(WordCount, lines_per_batch=1000),
    "ledger": Ledger,
    "growing_folder": GrowingFolder,
    **{f"{form}_files": partial(EventFiles, form=form) for form in FORMS},
    "orders": Orders,
    "data_frame": source_sums.data_frame,
    "batches": source_sums.batches,
    **ON_A_BROKER,
}
DEFAULT_SIZE = 60_000


def main() -> int:
    """Returns 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description="Runs a job, kills its driver by -9 at random, and compares.")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--size", type=int, help="of the input")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout-s", type=float, default=1800.0)
    given = parser.parse_args()
    made = CASES[given.case]
    size = given.size or getattr(getattr(made, "func", made), "default_size", DEFAULT_SIZE)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="txbatch-chaos-")))
        more: dict[str, Any] = {}
        if given.case in ON_A_BROKER:
            broker = Broker()
            stack.callback(broker.stop)
            broker.start()
            more = {"broker": broker, "broker_kills": given.broker_kills}
        steps = [made, RepublishedOrders] if made is Orders else [made]
        outcomes = [_played(step(folder, size, given.seed, given.timeout_s, **more), given.kills) for step in steps]
    return int(any(outcome.wrong for outcome in outcomes))


def _played(case: Any, kills: int) -> Outcome:
    started_s = time.monotonic()
    outcome = play(case, kills)
    print_summary(
        f"{type(case).__name__}, {case.size:,} {case.size_of}",
        {
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            **case.facts,
            "last run": outcome.said,
            "wrong": outcome.wrong or "nothing: exactly what an independent count says",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return outcome


if __name__ == "__main__":
    sys.exit(main())
