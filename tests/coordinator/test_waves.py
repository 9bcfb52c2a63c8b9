"""Which attempts travel together, and when a wave is over."""

from __future__ import annotations

import pytest

from coordinated_bolt import AttemptOutcome
from coordinator import waves
from coordinator.spouts.emitting import Batch
from coordinator.waves import WaveBook
from state import TransactionAttempt, pack


def att(txid, attempt_id=0):
    return TransactionAttempt(txid, attempt_id)


def book_of(*txids, window=8, timeout_s=10.0, estimated=0):
    book = WaveBook(window, timeout_s, lambda metadata: estimated)
    for txid in txids:
        book.add(att(txid), f"metadata {txid}")
    return book


def txids(wave):
    return None if wave is None else [batch.attempt.txid for batch in wave.batches]


def test_a_wave_takes_half_a_window_of_the_lowest_waiting_attempts():
    book = book_of(5, 3, 4, 1, 2, 6, window=7)
    wave = book.next_wave(100.0)
    assert wave is not None
    assert txids(wave) == [1, 2, 3, 4]
    assert wave.batches[0] == Batch(att(1), pack("metadata 1"))
    assert (wave.wave_id, wave.started_s, wave.running) == (1, 100.0, True)
    assert txids(book.next_wave(100.0)) == [5, 6]
    assert book.next_wave(100.0) is None


@pytest.mark.parametrize(("window", "size"), [(1, 1), (2, 1), (3, 2), (64, 32)])
def test_two_waves_fill_the_window(window, size):
    assert len(txids(book_of(*range(1, 100), window=window).next_wave(0.0))) == size


def test_a_wave_reads_no_more_input_than_allowed_unless_it_is_a_single_attempt(monkeypatch):
    monkeypatch.setattr(waves, "WAVE_BYTES_MAX", 100)
    assert txids(book_of(1, 2, 3, 4, estimated=40).next_wave(0.0)) == [1, 2]
    assert txids(book_of(1, 2, 3, 4, estimated=500).next_wave(0.0)) == [1]
    assert txids(book_of(1, 2, 3, 4, estimated=25).next_wave(0.0)) == [1, 2, 3, 4]


def test_a_crashed_wave_halves_the_next_down_to_one_and_good_ones_double_it_again():
    book = book_of(*range(1, 100), window=16)
    sizes = []
    for outcome in ("crashed", "crashed", "crashed", "crashed", "processed", "processed", "processed", "processed"):
        wave = book.next_wave(0.0)
        assert wave is not None
        sizes.append(len(wave.batches))
        attempts = [batch.attempt for batch in wave.batches]
        if outcome == "crashed":
            assert book.crashed(wave.wave_id) == attempts
            book.dropped(attempts)
            for attempt in attempts:
                book.add(attempt, "again")
        else:
            book.processed(wave.wave_id)
    assert sizes == [8, 4, 2, 1, 1, 2, 4, 8]


def test_a_cancelled_wave_that_ends_as_crashed_halves_nothing():
    book = book_of(*range(1, 100), window=16)
    wave = book.next_wave(0.0)
    assert wave is not None
    assert book.dropped([batch.attempt for batch in wave.batches]) == [1]
    book.crashed(1)
    assert len(txids(book.next_wave(0.0))) == 8


def test_a_cancelled_wave_that_ends_well_all_the_same_doubles_nothing():
    """Else a commit that crashes would never be found: the void wave behind it doubles what it has halved."""
    book = book_of(*range(1, 100), window=16)
    wave = book.next_wave(0.0)
    assert wave is not None
    book.halve(2)
    book.dropped([batch.attempt for batch in wave.batches])
    book.processed(1)
    assert len(txids(book.next_wave(0.0))) == 1


def test_a_wave_is_released_once_all_its_attempts_are_committed_or_dropped():
    book = book_of(1, 2, window=4)
    book.next_wave(0.0)
    book.processed(1)
    for txid in (1, 2):
        book.keep(AttemptOutcome(att(txid), residue=txid))
    assert book.residues([att(1), att(2), att(3)]) == {att(1): 1, att(2): 2}
    assert book.committed(att(1)) == AttemptOutcome(att(1), residue=1)
    assert book.take_finished() == []
    assert book.dropped([att(2)]) == []
    assert book.take_finished() == [1]
    assert book.take_finished() == []


def test_a_wave_whose_attempts_are_dropped_while_it_runs_is_cancelled_and_released_when_it_ends():
    book = book_of(1, 2, 3, window=4)
    book.next_wave(0.0)
    assert book.dropped([att(2), att(3)]) == []
    assert book.dropped([att(1)]) == [1]
    assert book.take_finished() == []
    assert not book.has_running()
    assert book.is_processing()
    book.crashed(1)
    assert book.take_finished() == [1]
    assert not book.is_processing()


def test_a_dropped_attempt_that_still_waits_is_forgotten():
    book = book_of(1, 2)
    assert book.active_count() == 2
    book.dropped([att(1)])
    assert txids(book.next_wave(0.0)) == [2]
    assert book.active_count() == 1


def test_attempts_of_one_txid_are_told_apart():
    book = book_of(1)
    book.next_wave(0.0)
    book.dropped([att(1)])
    book.add(att(1, 7), "again")
    book.crashed(1)
    wave = book.next_wave(0.0)
    assert wave is not None
    assert [batch.attempt for batch in wave.batches] == [att(1, 7)]
    assert book.wave_of(att(1, 7)) == 2


def test_an_overdue_wave_is_named_once_a_timeout():
    book = book_of(1, timeout_s=10.0)
    book.next_wave(100.0)
    assert [book.overdue(now) for now in (100.0, 110.0, 110.1, 115.0, 120.2)] == [[], [], [1], [], [1]]
    book.processed(1)
    assert book.overdue(1000.0) == []
