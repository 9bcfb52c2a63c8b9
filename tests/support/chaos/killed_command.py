"""Any command that commits transactions, killed by -9 on the way again and again, then run to its end."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.chaos.jobs import REPOSITORY, await_true


def run_killed(
    command: list[str], *, log: Path, committed: Callable[[], int], total: int, kills: int, seed: int, timeout_s: float
) -> list[int]:
    """Kills each of the first runs of a command once it has committed something more, and lets the last one end.

    Args:
        command: what is run, in the root of the checkout.
        log: where its output goes.
        committed: the last committed txid now.
        total: how many transactions there are.
        kills: how often.
        seed: draws the moments.
        timeout_s: the longest wait for anything.

    Returns:
        The last committed txid at each kill.
    """
    draw = random.Random(seed)
    seen: list[int] = []
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = sys.executable
    with log.open("wb") as output:
        for number in range(kills + 1):
            process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output)
            try:
                if number == kills:
                    code = process.wait(timeout_s)
                    assert code == 0, f"ended with code {code}:\n{log.read_text()[-4000:]}"
                    return seen
                left = total - (seen[-1] if seen else 0)
                target = (seen[-1] if seen else 0) + draw.randrange(max(1, left // (kills - number + 1)))
                await_true(lambda: process.poll() is not None or committed() > target, timeout_s)  # noqa: B023
                await_true(lambda: process.poll() is not None, draw.uniform(0.0, 0.3))  # noqa: B023
                assert process.poll() is None, f"ended before it was killed:\n{log.read_text()[-4000:]}"
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            seen.append(committed())
    raise AssertionError("the last run returns")
