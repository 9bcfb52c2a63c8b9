"""The text goes round, in files and in memory alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpus import Corpus, build_corpus, count_first_lines, read_lines
from benchmarks.suite.text_input import Lines, Numbers, distinct_words, repeated_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build_corpus(tmp_path_factory.mktemp("text") / "corpus", 0.05)


def test_batches_are_the_text_in_order_from_its_beginning_again_and_again():
    lines = Lines(["a\n", "b\n", "c\n"])

    assert [lines.batch(number, 2) for number in range(4)] == [["a", "b"], ["c", "a"], ["b", "c"], ["a", "b"]]
    assert lines.batch(1, 7) == ["b", "c", "a", "b", "c", "a", "b"]
    assert list(lines.first(7)) == ["a", "b", "c", "a", "b", "c", "a"]


@pytest.mark.parametrize("text", [Lines(map(str, range(11))), Numbers()])
def test_batches_hold_what_the_first_tuples_are(text):
    joined = [entry for number in range(5) for entry in text.batch(number, 4)]

    assert joined == list(text.first(20))


def test_a_repeated_corpus_has_enough_lines_and_is_made_once(corpus, tmp_path):
    repeated = repeated_corpus(corpus, tmp_path / "more", 2 * corpus.line_count + 1)

    assert repeated.line_count == 3 * corpus.line_count
    assert list(read_lines(repeated.files)) == 3 * list(read_lines(corpus.files))
    assert Corpus.load(tmp_path / "more") == repeated
    assert repeated_corpus(corpus, tmp_path / "more", 5) is corpus
    assert repeated_corpus(corpus, tmp_path / "more", 2 * corpus.line_count + 1) == repeated


def test_distinct_words_of_all_lines_are_the_vocabulary(corpus):
    assert (
        distinct_words(corpus, corpus.line_count)
        == corpus.vocabulary
        == len(count_first_lines(corpus, corpus.line_count))
    )
    assert Path(corpus.folder).is_dir()
