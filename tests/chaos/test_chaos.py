"""Real processes, killed: the answer is exact, and nobody ever saw half a transaction."""

from __future__ import annotations

import pytest

from tests.chaos.driver_process import DriverProcess, stored_hash
from tests.chaos.kill_word_count import KEY, TARGET, independent_count, kill_word_count
from tests.chaos.ledger_reader import read_while_killing

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.redis, pytest.mark.timeout(300)]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in range(3):
        lines = [f"line {n} of file {name} é w{n % 97} w{n * name % 1009}" for n in range(30_000)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sorted(folder.glob("*.txt"))


def test_word_counts_are_exact_although_the_driver_is_killed_again_and_again(tmp_path, corpus):
    report = kill_word_count(tmp_path, corpus, lines_per_batch=100, kills=3, seed=3, life_s=(3.0, 8.0))
    assert report.is_equal
    assert report.last_txid == 900


def test_of_two_runs_at_once_one_is_fenced_and_the_counts_are_exact(tmp_path, corpus):
    parameters = {"input": str(corpus[0].parent / "*.txt"), "lines_per_batch": 100}
    runs = [DriverProcess(TARGET, tmp_path / "data", parameters) for _ in range(2)]
    codes = sorted(run.result()[0] for run in runs)
    assert codes == [0, 3], (tmp_path / "driver.log").read_text()
    assert stored_hash(tmp_path / "data", KEY) == independent_count(corpus)


def test_another_input_under_an_old_id_is_refused_until_it_is_adopted(tmp_path, corpus):
    data_dir, log = tmp_path / "data", tmp_path / "driver.log"
    first = {"input": str(corpus[0]), "lines_per_batch": 1000}
    second = {"input": str(corpus[1]), "lines_per_batch": 1000}
    assert DriverProcess(TARGET, data_dir, first).result()[0] == 0
    before = stored_hash(data_dir, KEY)

    assert DriverProcess(TARGET, data_dir, second).result()[0] == 4
    assert stored_hash(data_dir, KEY) == before
    said = log.read_text(encoding="utf-8")
    for part in (str(corpus[0]), str(corpus[1]), "drop", "adopt"):
        assert part in said


def test_the_ledgers_sum_is_right_at_every_moment(tmp_path):
    reader = read_while_killing(tmp_path, transfers=16_000, accounts=30, kills=3, seed=5, life_s=(5.0, 9.0))
    assert not reader.wrong
    assert reader.reads > 100
    assert reader.versions > 3
