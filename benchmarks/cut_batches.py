"""The control's input: a folder of files, each so many lines, a micro-batch being one or a few of them.

The control is given fewer batches than the corpus has, so they are taken evenly from all over it: its
beginning has other text, with fewer words a line, than the rest.
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
        folder: made here.
        lines: lines of a micro-batch.
        files: files a micro-batch is spread over.
        batch_counts: micro-batches of each phase of a measurement; each spans the corpus.

    Returns:
        The independent count of all that was written, and the words of each micro-batch.
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
    """Position in the corpus -> micro-batches, evenly spread for each phase."""
    if not available:
        raise ValueError("the corpus has fewer lines than one micro-batch; make a larger one")
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
