"""The example of the streaming bridge as a process of its own, killed by -9 on the way.

TXBATCH_CHAOS_KILLS sets how often.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter

import pytest

from examples.streaming_bridge import make_data
from tests.support.chaos.killed_command import run_killed

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
FILES, TIMEOUT_S = 24, 120.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(TIMEOUT_S * (KILLS + 2)),
]


def test_clicks_of_a_streaming_query_are_exact_whenever_its_driver_is_killed(tmp_path, redis_backend):
    client = redis_backend.client()
    folder = tmp_path / "clicks"
    make_data(folder, FILES)
    counted: Counter[str] = Counter()
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            counted[row["page"]] += row["clicks"]

    command = [sys.executable, "examples/streaming_bridge.py", str(folder)]
    killed_at = run_killed(
        [*command, "--checkpoint", str(tmp_path / "checkpoint"), "--redis", redis_backend.url],
        log=tmp_path / "log",
        committed=lambda: int(client.hget("{clicks}:txbatch:control", "committed") or 0),
        total=FILES,
        kills=KILLS,
        seed=1,
        timeout_s=TIMEOUT_S,
    )

    assert len(killed_at) == KILLS
    assert 0 < killed_at[0] <= killed_at[-1] < FILES
    stored = client.hgetall("{clicks}:pages")
    assert {page.decode(): int(count) for page, count in stored.items()} == counted
