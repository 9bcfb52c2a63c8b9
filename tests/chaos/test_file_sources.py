"""Files in every format, and a folder that grows, under fire: short versions of what may be run at length.

Longer by the environment (TXBATCH_CHAOS_KILLS), or from the root of the checkout::

    python -m tests.support.chaos.kill_file_sources --events 60000 --kills 5
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.chaos.kill_file_sources import FORMS, kill_source, stop_growing

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "1"))
TIMEOUT_S = 200.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(8 * TIMEOUT_S),
]


@pytest.mark.parametrize(
    "form",
    FORMS if "TXBATCH_CHAOS_KILLS" in os.environ else ("gzip", pytest.param("parquet", marks=pytest.mark.thorough)),
)
def test_answers_are_exact_whenever_the_driver_is_killed(tmp_path: Path, form: str) -> None:
    outcome = kill_source(tmp_path, form, events=12_000, kills=KILLS, seed=1, timeout_s=TIMEOUT_S)
    assert outcome.is_exact
    assert not outcome.leftovers


def test_a_folder_that_grows_is_read_whole_over_kills_and_drains(tmp_path: Path) -> None:
    outcome = stop_growing(tmp_path, files=60, stops=3, seed=1, timeout_s=TIMEOUT_S)
    assert outcome.is_exact
    assert not outcome.leftovers
