"""Real processes on the embedded server, killed by -9: a short version of what tests.support.chaos does at length.

Longer, from the root of the checkout::

    python -m tests.support.chaos.kill_word_count --megabytes 50 --kills 10
    python -m tests.support.chaos.ledger_reader --kills 3

or here, by the environment: TXBATCH_CHAOS_MEGABYTES, TXBATCH_CHAOS_KILLS, TXBATCH_CHAOS_SEED.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import FORBIDDEN_WORDS, Site, await_true
from tests.support.chaos.kill_word_count import PrefixCounter, counts_of, gather_corpus, kill_word_count
from tests.support.chaos.ledger_reader import watch_ledger

MEGABYTES = float(os.environ.get("TXBATCH_CHAOS_MEGABYTES", "0.5"))
KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "2"))
SEED = int(os.environ.get("TXBATCH_CHAOS_SEED", "1"))
TIMEOUT_S = 120.0 + 60.0 * MEGABYTES

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(60 + TIMEOUT_S * (1 + KILLS)),
]


def word_count_site(folder: Path, pattern: Path, lines_per_batch: int, *more: str) -> Site:
    parameters = ["-p", f"input={pattern}", "-p", f"lines_per_batch={lines_per_batch}"]
    return Site(folder, "word_count", ["examples.word_count:topology", *parameters, *more], TIMEOUT_S)


def stored_counts(site: Site) -> Counter[str]:
    with EmbeddedServer(site.data_dir):
        found = site.snapshot("HGETALL", "counts")
    assert found is not None
    return counts_of(found[1])


def test_counts_are_exact_whenever_the_driver_is_killed(tmp_path):
    outcome = kill_word_count(
        tmp_path,
        megabytes=MEGABYTES,
        kills=KILLS,
        seed=SEED,
        lines_per_batch=20,
        max_pending=16,
        timeout_s=TIMEOUT_S,
    )

    assert len(outcome.kills) == KILLS
    assert any(not kill.in_vain and kill.committed for kill in outcome.kills)
    assert len(outcome.prefixes) > KILLS  # somebody looked on while transactions were committed
    assert outcome.prefixes == dict.fromkeys(outcome.prefixes, True)
    assert outcome.is_exact
    assert outcome.leftovers == []


def test_the_ledgers_total_is_never_off_while_the_driver_is_killed(tmp_path):
    outcome = watch_ledger(
        tmp_path, transfers=4000, accounts=50, transfers_per_batch=50, kills=2, seed=SEED, timeout_s=TIMEOUT_S
    )

    assert outcome.reader.wrong == []
    assert outcome.reader.reads > outcome.reader.states > 3  # it looked on while transactions were committed
    assert outcome.is_exact
    assert outcome.leftovers == []


def test_of_two_runs_on_one_data_directory_one_is_fenced_and_the_counts_are_exact(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    gather_corpus(corpus, 300_000)
    truth = PrefixCounter(corpus, 40)
    site = word_count_site(tmp_path, corpus / "*.txt", 40, "--max-pending", "16")
    try:
        jobs = [site.start(), site.start()]
        codes = sorted(job.wait(TIMEOUT_S) for job in jobs)
        assert codes == [0, 3], [job.complaint() for job in jobs]
        (fenced,) = (job for job in jobs if job.wait(0) == 3)
        assert "taken over by a newer coordinator on " in fenced.complaint()
        assert not any(word in fenced.complaint() for word in FORBIDDEN_WORDS)
        assert stored_counts(site) == truth.up_to(truth.transactions)
        assert await_true(lambda: not site.leftovers(), TIMEOUT_S)
    finally:
        site.close()


def test_another_input_on_an_old_id_is_refused_with_both_fingerprints_until_it_is_adopted(tmp_path):
    text = tmp_path / "input.txt"
    lines = [f"line {number} of the input" for number in range(100)]
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    site = word_count_site(tmp_path, text, 10)
    try:
        first_size = text.stat().st_size
        assert site.finish()["committed"] == 10
        more = [f"line {number} came later" for number in range(30)]
        with text.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in more)

        refused = site.start()
        assert refused.wait(TIMEOUT_S) == 4
        sizes = [f"{size} bytes" for size in (first_size, text.stat().st_size)]
        drop = "`txbatch drop word_count --data-dir "
        for part in ("topology 'word_count' was started on another input", *sizes, drop):
            assert part in refused.complaint()
        assert refused.complaint().count("digest ") == 2
        assert not any(word in refused.complaint() for word in FORBIDDEN_WORDS)
        assert stored_counts(site) == Counter(" ".join(lines).split())

        adopted = site.finish("--adopt")
        assert (adopted["committed"], adopted["last_txid"]) == (3, 13)
        assert stored_counts(site) == Counter(" ".join(lines + more).split())
    finally:
        site.close()
