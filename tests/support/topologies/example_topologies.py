"""The topologies of the examples, built over files that exist, none of which is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from examples import (
    clickstream,
    dedupe,
    global_count,
    kafka_to_redis,
    ledger,
    plain_word_count,
    top_k,
    word_count,
    word_count_batches,
)

A_FILE = str(Path(__file__))

EXAMPLES: Mapping[str, Callable[[], Any]] = {
    "clickstream": lambda: clickstream.topology(A_FILE),
    "dedupe": lambda: dedupe.topology(A_FILE),
    "global_count": global_count.topology,
    "kafka_to_redis": lambda: kafka_to_redis.topology("localhost:9092", "page_views"),
    "ledger": lambda: ledger.topology(A_FILE),
    "plain_word_count": lambda: plain_word_count.topology(output="counts.txt"),
    "top_k": lambda: top_k.topology(A_FILE),
    "word_count": lambda: word_count.topology(A_FILE),
    "word_count_batches": lambda: word_count_batches.topology(A_FILE),
}
