"""During a run the cycle collector looks rarely, and afterwards as often as before, however the run has ended."""

from __future__ import annotations

import gc

import pytest

from coordinator.rare_collections import THRESHOLDS, rare_collections


def test_thresholds_are_high_in_the_block_and_the_callers_after_it():
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_threshold() == before


def test_the_callers_thresholds_are_back_after_an_error():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="over"), rare_collections():
        raise ValueError("over")
    assert gc.get_threshold() == before
