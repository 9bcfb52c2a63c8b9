"""More input than the corpus has: links to its files under other names, any number of times, without a copy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.corpus import Corpus, count_first_lines, count_words, read_lines


def link_passes(corpus: Corpus, folder: Path, pass_count: int) -> str:
    """Fills a folder with `pass_count` links to each file of the corpus, and returns a glob for them."""
    folder.mkdir(parents=True)
    for number in range(pass_count):
        for path in corpus.files:
            (folder / f"{number:03d}-{path.name}").symlink_to(path)
    return str(folder / "*.txt")


def count_first_lines_of_passes(corpus: Corpus, line_count: int) -> Counter[str]:
    """Returns the independent count of the first lines of the repeated corpus."""
    passes, rest = divmod(line_count, corpus.line_count)
    counts = count_first_lines(corpus, rest)
    if passes:
        for word, count in count_words(read_lines(corpus.files)).items():
            counts[word] += passes * count
    return counts
