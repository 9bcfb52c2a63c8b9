"""The word count over batches stores what the word count over tuples stores, and what a plain count says."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from benchmarks.task_counts import with_tasks
from coordinator.testing.cluster.cluster import LocalCluster
from examples import word_count, word_count_batches


@pytest.fixture
def corpus(tmp_path):
    random = Random(11)
    words = [*(f"word{number}" for number in range(40)), "wörd", "to", "be"]
    text = "\n".join(" ".join(random.choices(words, k=random.randint(0, 9))) for _ in range(500))
    path = tmp_path / "text.txt"
    path.write_text(text)
    return path, Counter(text.split())


@pytest.mark.parametrize("tasks", [None, 1, 2, 3])
def test_both_word_counts_store_the_same(corpus, tasks):
    path, expected = corpus
    for example in (word_count, word_count_batches):
        with LocalCluster(seed=3) as cluster:
            topology = example.topology(str(path), 100)
            local = cluster.submit(topology if tasks is None else with_tasks(topology, tasks))
            local.run_until_idle()
            assert local.state("counts") == dict(expected)
