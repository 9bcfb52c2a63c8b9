"""The control's input: a folder of files with a fixed number of lines; a micro-batch is one or a few files.

The control gets fewer batches than the corpus has, so they are taken evenly from the whole corpus: the text at
its beginning differs from the rest and has fewer words per line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.corpus import Corpus, count_words, read_lines

FIRST_TIME_S = 1_600_000_000


def cut_batches(
    corpus: Corpus, folder: Path, *, lines: int, files: int, batch_counts: Sequence[int]
) -> tuple[Counter[str], list[int]]:
    """Writes files with ascending times, the order in which Spark reads them.

    Args:
        corpus: the text.
        folder: where to write; must not exist.
        lines: lines per micro-batch.
        files: files per micro-batch.
        batch_counts: micro-batches in each phase of a measurement; each phase spans the corpus.

    Returns:
        The independent count of everything written, and the number of words in each micro-batch.
    """
    folder.mkdir(parents=True)
    places = _places(corpus.line_count // lines, batch_counts)
    counts: Counter[str] = Counter()
    words = [0] * sum(batch_counts)
    source = read_lines(corpus.files)
    for index in range(max(places) + 1):
        batch = list(islice(source, lines))
        for number in places.get(index, ()):
            found = count_words(batch)
            counts.update(found)
            words[number] = found.total()
            _write(folder, batch, number, files)
    return counts, words


def _places(available: int, batch_counts: Sequence[int]) -> dict[int, list[int]]:
    """Returns position in the corpus -> micro-batches, evenly spread for each phase."""
    if not available:
        raise ValueError("the corpus has fewer lines than one micro-batch; make a larger corpus")
    places: dict[int, list[int]] = {}
    number = 0
    for batch_count in batch_counts:
        for step in range(batch_count):
            places.setdefault(step * available // batch_count, []).append(number)
            number += 1
    return places


def _write(folder: Path, batch: list[str], number: int, files: int) -> None:
    for part in range(files):
        share = batch[len(batch) * part // files : len(batch) * (part + 1) // files]
        position = number * files + part
        path = folder / f"{position:07d}.txt"
        path.write_bytes("".join(share).encode())
        os.utime(path, (FIRST_TIME_S + position, FIRST_TIME_S + position))
