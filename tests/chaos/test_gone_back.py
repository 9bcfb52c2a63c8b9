"""A real server set back under a run: a short version of what `tests.support.chaos.gone_back` does at length."""

from __future__ import annotations

import os

import pytest

from state.redis_server.program import find_server_program
from tests.support.chaos.gone_back import set_back

ROUNDS = int(os.environ.get("TXBATCH_CHAOS_ROUNDS", "12"))

pytestmark = [pytest.mark.chaos, pytest.mark.redis, pytest.mark.timeout(60 + ROUNDS)]


@pytest.mark.parametrize("by_cut", [False, True], ids=["older snapshot", "cut append-only file"])
def test_nothing_is_lost_or_doubled_when_the_server_goes_back_under_a_run(by_cut):
    outcome = set_back(find_server_program(), ROUNDS, by_cut=by_cut, seed=7)
    assert outcome.wrong == []
    assert outcome.lost
    assert outcome.ended["done"] >= ROUNDS
    assert outcome.ended["REGRESSED"] + outcome.ended["returned to an earlier state"]
