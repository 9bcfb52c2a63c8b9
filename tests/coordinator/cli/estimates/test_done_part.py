"""How much of the input is committed, while more of it is cut."""

from __future__ import annotations

import pytest

from coordinator.cli.estimates.done_part import DonePart


def test_nothing_is_known_of_an_input_without_size() -> None:
    done = DonePart()
    done.update(last_txid=5, cut_txid=8, cut_part=None)

    assert done.fraction() is None


def test_a_part_is_done_when_it_is_committed_and_not_when_it_is_cut() -> None:
    done = DonePart()
    done.update(last_txid=0, cut_txid=10, cut_part=1.0)
    assert done.fraction() == 0.0

    done.update(last_txid=5, cut_txid=10, cut_part=1.0)
    assert done.fraction() == pytest.approx(0.5)

    done.update(last_txid=10, cut_txid=10, cut_part=1.0)
    assert done.fraction() == 1.0


def test_what_was_cut_at_a_txid_counts_when_that_txid_is_committed() -> None:
    done = DonePart()
    done.update(last_txid=0, cut_txid=10, cut_part=0.1)  # ten small transactions,
    done.update(last_txid=0, cut_txid=20, cut_part=0.9)  # then ten large ones
    done.update(last_txid=0, cut_txid=21, cut_part=1.0)

    for txid, part in ((10, 0.1), (15, 0.5), (20, 0.9), (21, 1.0)):
        done.update(last_txid=txid, cut_txid=21, cut_part=1.0)
        assert done.fraction() == pytest.approx(part)


def test_a_run_that_continues_begins_with_what_earlier_runs_did() -> None:
    done = DonePart()
    done.update(last_txid=60, cut_txid=80, cut_part=0.8)

    assert done.fraction() == pytest.approx(0.6)


def test_attempts_that_are_dropped_do_not_take_anything_back() -> None:
    done = DonePart()
    done.update(last_txid=4, cut_txid=20, cut_part=0.5)
    before = done.fraction()
    done.update(last_txid=4, cut_txid=6, cut_part=0.15)  # replayed: the higher ones are cut again
    done.update(last_txid=4, cut_txid=20, cut_part=0.5)

    assert done.fraction() == before


def test_only_the_window_is_remembered() -> None:
    done = DonePart()
    for txid in range(10_000):
        done.update(last_txid=txid, cut_txid=txid + 64, cut_part=(txid + 64) / 20_000)

    assert done.fraction() == pytest.approx(9_999 / 20_000)
    assert len(done._cuts) <= 66
