"""A topic of a real broker is counted exactly though driver and broker are killed on the way.

With other numbers: ``python -m tests.support.chaos.kill_kafka``, or here by the environment; see test_chaos.py.
"""

from __future__ import annotations

import os

import pytest

from tests.support.chaos.kill_kafka import FACTORIES, kill_kafka

MESSAGES = int(os.environ.get("TXBATCH_CHAOS_MESSAGES", "200_000"))
KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
SEED = int(os.environ.get("TXBATCH_CHAOS_SEED", "7"))
TIMEOUT_S = 300.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(120 + TIMEOUT_S * (1 + KILLS)),
]


@pytest.mark.parametrize(
    "is_opaque", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["transactional", "opaque"]
)
def test_a_topic_is_counted_exactly_whenever_driver_and_broker_are_killed(tmp_path, own_broker, is_opaque):
    outcome = kill_kafka(
        tmp_path,
        own_broker,
        messages=MESSAGES,
        kills=KILLS,
        broker_kills=KILLS,
        seed=SEED,
        per_batch=5000,
        timeout_s=TIMEOUT_S,
        factory=FACTORIES[is_opaque],
    )
    assert outcome.is_exact, f"{outcome.stored} messages are counted"
    assert outcome.broker_kills, "the broker was killed"
    assert outcome.leftovers == []
