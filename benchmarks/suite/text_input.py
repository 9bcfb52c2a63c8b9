"""The text of the suite: a corpus repeated as often as the largest transaction needs; as files, or in memory."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

from benchmarks.corpus import MANIFEST, Corpus, copy_passes, count_words, read_lines


def repeated_corpus(corpus: Corpus, folder: Path, line_count: int) -> Corpus:
    """Returns a corpus of at least that many lines: copies of the files of another one, made if they are missing."""
    passes = -(-line_count // corpus.line_count)
    if passes <= 1:
        return corpus
    found = Corpus.load(folder)
    if found is not None and found.line_count >= line_count:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    copy_passes(corpus, folder, passes)
    repeated = replace(
        corpus,
        folder=str(folder),
        byte_count=passes * corpus.byte_count,
        line_count=passes * corpus.line_count,
        word_count=passes * corpus.word_count,
        repeated=passes - 1,
    )
    (folder / MANIFEST).write_text(json.dumps(asdict(repeated)), encoding="utf-8")
    return repeated


class Lines:
    """All lines of a corpus in memory, as an endless text: the controls do not pay for reading.

    Args:
        lines: at least one.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = [line.rstrip("\n") for line in lines]

    @classmethod
    def of(cls, corpus: Corpus) -> Lines:
        """Reads a corpus."""
        return cls(read_lines(corpus.files))

    def batch(self, number: int, size: int) -> list[str]:
        """Returns a batch of the endless text; batch 0 is its beginning."""
        start = number * size % len(self._lines)
        found = self._lines[start : start + size]
        while len(found) < size:
            found += self._lines[: size - len(found)]
        return found

    def first(self, count: int) -> Iterable[str]:
        """Yields the first lines of the endless text."""
        for _ in range(count // len(self._lines)):
            yield from self._lines
        yield from islice(self._lines, count % len(self._lines))


class Numbers:
    """0, 1, 2, …: the input of workloads that make their tuples from a number each."""

    def batch(self, number: int, size: int) -> range:
        """Returns a batch; batch 0 begins at 0."""
        return range(number * size, (number + 1) * size)

    def first(self, count: int) -> range:
        """Returns the first numbers."""
        return range(count)


def distinct_words(corpus: Corpus, lines: int, samples: int = 20) -> float:
    """Returns how many different words that many lines have, on average over transactions from the whole corpus."""
    text = Lines.of(corpus)
    count = max(1, corpus.line_count // lines)
    numbers = sorted({step * count // samples for step in range(samples)})
    found: list[Counter[str]] = [count_words(text.batch(number, lines)) for number in numbers]
    return sum(len(words) for words in found) / len(found)
