"""What the page on Kafka, and the section on its example, show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.examples.page import Section
from tests.support.kafka.messages import produce

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/sources-kafka.md").read_text(encoding="utf-8")
PAGES = [f"/page/{number * number % 37}" for number in range(500)]
RUN_TIMEOUT_S = 150.0


def test_every_block_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/sources-kafka.md", "exec"), {"__name__": "kafka_page"})


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.spark
@pytest.mark.slow
def test_the_example_counts_as_its_section_shows(broker, make_topic, redis_backend):
    topic = make_topic(3)
    for partition in range(3):
        produce(broker.address, topic, [page.encode() for page in PAGES[partition::3]], partition)
    section = Section("kafka_to_redis")
    (run,) = section.commands("txbatch")
    (read,) = section.shown()
    places = {"servers=localhost:9092": f"servers={broker.address}", "topic=page_views": f"topic={topic}"}
    given = [places.get(word, word) for word in run]
    assert set(places.values()) <= set(given)
    command = [
        sys.executable,
        "-m",
        "coordinator.operating.cli",
        *given[1:],
        "--redis",
        redis_backend.url,
        "--master",
        "local[2]",
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    with redis.Redis.from_url(redis_backend.url, decode_responses=True, protocol=2) as client:
        _, verb, key, page = read.command
        assert (verb, page) == ("HGET", PAGES[0])
        found: Any = client.hgetall(key)
    assert {page: int(views) for page, views in found.items()} == Counter(PAGES)
