"""Drivers of real jobs on the embedded server, killed by -9 on the way: whatever was committed is exact.

At length by ``python -m tests.support.chaos.killed``, or here: TXBATCH_CHAOS_KILLS and TXBATCH_CHAOS_SEED.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.chaos.killed.case import Outcome, play
from tests.support.chaos.killed.event_files import FORMS, EventFiles, GrowingFolder
from tests.support.chaos.killed.ledger import Ledger
from tests.support.chaos.killed.orders import Orders, RepublishedOrders
from tests.support.chaos.killed.page_views import OpaqueViews, PageViews
from tests.support.chaos.killed.source_sums import batches, data_frame, redis_streams
from tests.support.chaos.killed.word_count import WordCount

GIVEN_KILLS = os.environ.get("TXBATCH_CHAOS_KILLS")
KILLS = int(GIVEN_KILLS or "1")
SEED = int(os.environ.get("TXBATCH_CHAOS_SEED", "7"))
TIMEOUT_S = 240.0
nightly = () if GIVEN_KILLS else pytest.mark.nightly

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S * (KILLS + 4)),
]


def assert_exact(outcome: Outcome, kills: int = KILLS) -> None:
    assert outcome.wrong == []
    assert len(outcome.kills) == kills
    assert any(kill.committed and not kill.in_vain for kill in outcome.kills)


@pytest.mark.nightly
def test_words_are_counted_exactly_and_at_every_moment(tmp_path: Path) -> None:
    case = WordCount(tmp_path, 500_000, SEED, TIMEOUT_S)
    assert_exact(play(case, kills=KILLS + 1), KILLS + 1)
    assert len(case.prefixes) > KILLS + 1  # somebody looked on while transactions were committed


def test_the_ledgers_total_is_never_off(tmp_path: Path) -> None:
    case = Ledger(tmp_path, 4000, SEED, TIMEOUT_S)
    assert_exact(play(case, kills=KILLS + 1), KILLS + 1)
    assert case.reads > case.states > 3  # it looked on while transactions were committed


@pytest.mark.nightly
def test_a_folder_that_grows_is_read_whole_over_kills_and_drains(tmp_path: Path) -> None:
    assert_exact(play(GrowingFolder(tmp_path, 60, SEED, TIMEOUT_S), kills=KILLS + 2), KILLS + 2)


@pytest.mark.nightly
def test_each_order_is_refused_once_and_published_once(tmp_path: Path) -> None:
    assert_exact(play(Orders(tmp_path, 4_000, SEED, TIMEOUT_S), KILLS))
    assert_exact(play(RepublishedOrders(tmp_path, 4_000, SEED, TIMEOUT_S), KILLS))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("make", "size"),
    [
        pytest.param(partial(EventFiles, form=form), 12_000, id=form, marks=() if form == "gzip" else nightly)
        for form in FORMS
    ]
    + [
        pytest.param(data_frame, 6_000, id="DataFrame", marks=nightly),
        pytest.param(batches, 6_000, id="batches", marks=nightly),
    ],
)
def test_answers_are_exact(tmp_path: Path, make: Any, size: int) -> None:
    assert_exact(play(make(tmp_path, size, SEED, TIMEOUT_S), KILLS))


@pytest.mark.nightly
def test_streams_that_are_trimmed_are_summed_exactly(tmp_path: Path, redis_backend: Any) -> None:
    assert_exact(play(redis_streams(tmp_path, 6_000, SEED, TIMEOUT_S, url=redis_backend.url), KILLS))
    client = redis_backend.client()
    assert client.xlen("numbers:0") + client.xlen("numbers:1") == 0


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.parametrize("make", [PageViews, pytest.param(OpaqueViews, marks=nightly)], ids=["transactional", "opaque"])
def test_a_topic_is_counted_exactly_though_its_broker_is_killed_too(tmp_path: Path, own_broker: Any, make: Any) -> None:
    case = make(tmp_path, 200_000, SEED, TIMEOUT_S, broker=own_broker, broker_kills=KILLS)
    assert_exact(play(case, KILLS))
    assert case.broker_killed
