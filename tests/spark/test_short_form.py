"""A topology of the short form leaves the same on Spark as in one process."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator import FixedBatchesSpout, stream
from state import HashState, SetState
from tests.support.spark.either_engine import EITHER_ENGINE

pytestmark = [pytest.mark.spark, pytest.mark.redis]

LINES = [[[f"to be or not {number % 5}"] for number in range(start, start + 9)] for start in range(0, 90, 9)]


def is_word(word):
    return not word.isdigit()


@EITHER_ENGINE
@pytest.mark.parametrize("parallelism", [1, 2])
def test_words_are_counted_and_looked_up(cluster, parallelism):
    counts = HashState("counts")
    spout = FixedBatchesSpout(LINES, ["line"])
    words = stream(spout, "lines", parallelism).flat_map(str.split, to="word").filter(is_word)
    words.count_by("word", into=counts)
    first = words.distinct_by("word", into=SetState("seen"))
    first.key_by(lambda word: 10 * len(word)).count_by("key", into=HashState("lengths", field=int))
    known = words.enrich(counts, by="word", to="before", as_of="transaction").filter(
        lambda before: before is not None, of="before"
    )
    known.max_by("word", "before", into=HashState("before"))
    cluster.run(words.topology("short_form", parallelism=parallelism), commit_group_max=7)

    expected = Counter(word for batch in LINES for (line,) in batch for word in line.split() if not word.isdigit())
    assert cluster.hash("{short_form}:counts") == expected
    assert {int(length): count for length, count in cluster.hash("{short_form}:lengths").items()} == {20: 3, 30: 1}
    assert cluster.hash("{short_form}:before") == {word: count * 9 // 10 for word, count in expected.items()}
