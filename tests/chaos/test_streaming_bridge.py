"""The example of the streaming bridge as a process of its own, killed by -9 on the way.

TXBATCH_CHAOS_KILLS sets how often.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter

import pytest

from tests.support.chaos.killed_command import run_killed

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
FILES, TIMEOUT_S = 24, 120.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S * (KILLS + 2)),
]


def test_clicks_of_a_streaming_query_are_exact_whenever_its_driver_is_killed(tmp_path, redis_backend):
    client = redis_backend.client()
    draw = random.Random(1)
    counted: Counter[str] = Counter()
    folder = tmp_path / "clicks"
    folder.mkdir()
    for number in range(FILES):
        rows = [(draw.choice("abcde"), draw.randrange(9)) for _ in range(50)]
        for page, clicks in rows:
            counted[page] += clicks
        (folder / f"{number}.json").write_text(
            "".join(f'{{"page": "{page}", "clicks": {clicks}}}\n' for page, clicks in rows)
        )

    command = [sys.executable, "examples/streaming_bridge.py", f"input={folder}"]
    killed_at = run_killed(
        [*command, f"checkpoint={tmp_path / 'checkpoint'}", f"redis_url={redis_backend.url}"],
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
