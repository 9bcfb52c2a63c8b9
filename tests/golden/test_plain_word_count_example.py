"""Storm's first example counts every word, and again what failed; tests/spark has it on Spark."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from examples.plain_word_count import SENTENCES, topology

WORDS = Counter(word for sentence in SENTENCES for word in sentence.split())
RUNNING = sorted(f"{word} {number}" for word, count in WORDS.items() for number in range(1, count + 1))


@pytest.mark.parametrize("seed", range(5))
def test_every_word_is_counted_on_a_local_cluster(tmp_path, seed):
    output = tmp_path / "counts.txt"
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(topology(output=output))
        run.run_until_idle()
        assert sorted(run.acked("sentences")) == list(range(len(SENTENCES)))
        assert ("default", ["apple", 2]) in run.emitted("count")
    assert sorted(output.read_text(encoding="utf-8").splitlines()) == RUNNING


def test_a_sentence_that_failed_is_counted_again(tmp_path):
    with LocalCluster() as cluster:
        run = cluster.submit(topology(output=tmp_path / "unused"), by_hand=["append"])
        run.run_until_idle()
        run.fail(run.waiting("append")[0])
        run.run_until_idle()
        assert len(run.failed("sentences")) == 1
        assert len(run.emitted("sentences")) == len(SENTENCES) + 1
