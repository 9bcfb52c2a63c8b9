"""More input than the corpus has: its files again under other names, as often as wanted, without a copy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.corpus import Corpus, count_first_lines, count_words, read_lines


def link_passes(corpus: Corpus, folder: Path, pass_count: int) -> str:
    """Fills a folder with links to the corpus, `pass_count` times over, and returns a glob of them."""
    folder.mkdir(parents=True)
    for number in range(pass_count):
        for path in corpus.files:
            (folder / f"{number:03d}-{path.name}").symlink_to(path)
    return str(folder / "*.txt")


def count_first_lines_of_passes(corpus: Corpus, line_count: int) -> Counter[str]:
    """The independent count of the first lines of the corpus read over and over."""
    passes, rest = divmod(line_count, corpus.line_count)
    counts = count_first_lines(corpus, rest)
    if passes:
        for word, count in count_words(read_lines(corpus.files)).items():
            counts[word] += passes * count
    return counts
