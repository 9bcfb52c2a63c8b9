"""The topologies of the examples, built over files that exist, none of which is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from examples import (
    checked_orders,
    clickstream,
    global_count,
    kafka_to_redis,
    ledger,
    plain_word_count,
    word_count,
    word_count_batches,
)

A_FILE = str(Path(__file__))

EXAMPLES: Mapping[str, Callable[[], Any]] = {
    "checked_orders": lambda: checked_orders.topology(A_FILE),
    "clickstream": lambda: clickstream.topology(A_FILE),
    "global_count": global_count.topology,
    "kafka_to_redis": lambda: kafka_to_redis.topology("localhost:9092", "page_views"),
    "ledger": ledger.topology,
    "plain_word_count": lambda: plain_word_count.topology(output="counts.txt"),
    "word_count": lambda: word_count.topology(A_FILE),
    "word_count_batches": lambda: word_count_batches.topology(A_FILE),
}
