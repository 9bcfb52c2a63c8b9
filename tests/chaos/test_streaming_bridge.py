"""The example of the streaming bridge as a process of its own, killed by -9 on the way.

TXBATCH_CHAOS_KILLS sets how often.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from examples.streaming_bridge import make_data
from tests.support.chaos.jobs import REPOSITORY, await_true

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


def run_killed(command: list[str], log: Path, committed: Callable[[], int]) -> list[int]:
    """Kills each of the first runs once it has committed something more, and lets the last one end.

    Returns:
        The last committed txid at each kill.
    """
    draw, seen = Random(1), [0]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = sys.executable
    for number in range(KILLS + 1):
        with log.open("ab") as output:
            process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output)
        try:
            if number == KILLS:
                assert process.wait(TIMEOUT_S) == 0, log.read_text()[-4000:]
                break
            target = seen[-1] + draw.randrange(max(1, (FILES - seen[-1]) // (KILLS - number + 1)))
            await_true(lambda: process.poll() is not None or committed() > target, TIMEOUT_S)  # noqa: B023
            await_true(lambda: process.poll() is not None, draw.uniform(0.0, 0.3))  # noqa: B023
            assert process.poll() is None, f"ended before it was killed:\n{log.read_text()[-4000:]}"
        finally:
            process.kill()
            process.wait()
        seen.append(committed())
    return seen[1:]


def test_clicks_of_a_streaming_query_are_exact_whenever_its_driver_is_killed(tmp_path, redis_backend):
    client = redis_backend.client()
    folder = tmp_path / "clicks"
    make_data(folder, FILES)
    counted: Counter[str] = Counter()
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            counted[row["page"]] += row["clicks"]

    killed_at = run_killed(
        [
            *(sys.executable, "examples/streaming_bridge.py", str(folder)),
            *("--checkpoint", str(tmp_path / "checkpoint"), "--redis", redis_backend.url),
        ],
        tmp_path / "log",
        lambda: int(client.hget("{clicks}:txbatch:control", "committed") or 0),
    )

    assert len(killed_at) == KILLS
    assert 0 < killed_at[0] <= killed_at[-1] < FILES
    stored = client.hgetall("{clicks}:pages")
    assert {page.decode(): int(count) for page, count in stored.items()} == counted
