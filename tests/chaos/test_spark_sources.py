"""Sources on Spark and Redis Streams: their drivers are killed by -9, and the sums are exact.

TXBATCH_CHAOS_KILLS sets how often.
"""

from __future__ import annotations

import os
import random

import pytest

from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import Site, await_true, kill_at_random_moments
from tests.support.chaos.kill_word_count import counts_of
from tests.support.chaos.source_jobs import KEYS, TOPOLOGY_ID, amount_of, sums

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
COUNT, STEP, TIMEOUT_S = 6_000, 150, 240.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S * (KILLS + 2)),
]


def killed(tmp_path, factory, *parameters):
    """Runs a topology whose driver is killed on the way; returns its sums, and the last run's figures."""
    given = [part for parameter in parameters for part in ("-p", parameter)]
    arguments = [f"tests.support.chaos.source_jobs:{factory}", *given, "--max-pending", "8"]
    site = Site(tmp_path, TOPOLOGY_ID, arguments, TIMEOUT_S)
    try:
        kills = kill_at_random_moments(site, kills=KILLS, total=COUNT // STEP, draw=random.Random(7))
        said = site.finish()
        with EmbeddedServer(site.data_dir):
            found = site.snapshot("HGETALL", "sums")
        assert await_true(lambda: not site.leftovers(), TIMEOUT_S)
    finally:
        site.close()
    assert len(kills) == KILLS
    assert any(kill.committed and not kill.in_vain for kill in kills)
    assert said["last_txid"] == COUNT // STEP
    assert found is not None
    return dict(counts_of(found[1]))


@pytest.mark.thorough
def test_sums_over_a_data_frame_are_exact(tmp_path):
    path = tmp_path / "numbers.json"
    path.write_text("".join(f'{{"id": {number}}}\n' for number in range(COUNT)))

    assert killed(tmp_path, "data_frame", f"path={path}", f"width={STEP}") == sums(COUNT)


@pytest.mark.thorough
def test_sums_over_batches_of_a_program_are_exact(tmp_path):
    assert killed(tmp_path, "batches", f"count={COUNT}", f"rows={STEP}") == sums(COUNT)


def test_sums_over_redis_streams_that_are_trimmed_are_exact(tmp_path, redis_backend):
    client = redis_backend.client()
    with client.pipeline(transaction=False) as pipeline:
        for number in range(COUNT):
            pipeline.xadd(f"numbers:{number % 2}", {"key": number % KEYS, "amount": amount_of(number)})
        pipeline.execute()

    found = killed(tmp_path, "redis_streams", f"url={redis_backend.url}", f"take={STEP // 2}")

    assert found == sums(COUNT)
    assert client.xlen("numbers:0") + client.xlen("numbers:1") == 0
