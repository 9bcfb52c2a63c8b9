"""A second run on one data directory: beside the first one, and over another input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import FORBIDDEN_WORDS, Site, await_true
from tests.support.chaos.killed.case import counts_of
from tests.support.chaos.killed.word_count import WordCount

TIMEOUT_S = 150.0

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(3 * TIMEOUT_S),
]


def stored_counts(site: Site) -> Counter[str]:
    with EmbeddedServer(site.data_dir):
        found = site.snapshot("HGETALL", "counts")
    assert found is not None
    return counts_of(found[1])


def test_of_two_runs_on_one_data_directory_one_is_fenced_and_the_counts_are_exact(tmp_path: Path) -> None:
    case = WordCount(tmp_path, 300_000, 1, TIMEOUT_S, lines_per_batch=40)
    site = case.site
    try:
        jobs = [site.start(), site.start()]
        codes = sorted(job.wait(TIMEOUT_S) for job in jobs)
        assert codes == [0, 3], [job.complaint() for job in jobs]
        (fenced,) = (job for job in jobs if job.wait(0) == 3)
        assert "taken over by a newer coordinator on " in fenced.complaint()
        assert not any(word in fenced.complaint() for word in FORBIDDEN_WORDS)
        assert stored_counts(site) == case.truth.up_to(case.total)
        assert await_true(lambda: not site.leftovers(), TIMEOUT_S)
    finally:
        site.close()


def test_another_input_on_an_old_id_is_refused_with_both_fingerprints_until_it_is_adopted(tmp_path: Path) -> None:
    text = tmp_path / "input.txt"
    lines = [f"line {number} of the input" for number in range(100)]
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = ["-p", f"input={text}", "-p", "lines_per_batch=10"]
    site = Site(tmp_path, "word_count", ["examples.word_count:topology", *given], TIMEOUT_S)
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
