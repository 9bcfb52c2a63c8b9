"""Refused orders under fire, and their replay: a short version of what may be run at length.

Longer by the environment (TXBATCH_CHAOS_KILLS), or from the root of the checkout::

    python -m tests.support.chaos.kill_dead_letters --orders 40000 --kills 10
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.chaos.kill_dead_letters import kill_orders

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
TIMEOUT_S = 200.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(8 * TIMEOUT_S),
]


def test_every_refused_order_is_kept_once_and_published_once_whenever_the_driver_is_killed(tmp_path: Path) -> None:
    outcome = kill_orders(tmp_path, orders=4_000, kills=KILLS, seed=1, timeout_s=TIMEOUT_S)
    assert outcome.difference == {}
    assert not outcome.leftovers
