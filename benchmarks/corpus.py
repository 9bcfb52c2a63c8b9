"""A corpus of real text, from licences, documentation and sources installed on this machine, and a plain count of it.

Made-up words would flatter both sides: real text has blank lines, long lines and a vocabulary that keeps
growing. The count is deliberately naive, so that it can serve as the reference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Self

MANIFEST = "corpus.json"
FILE_COUNT = 8
PASSES_MAX = 200
BYTES_PER_S_MAX = 100e6
"""More than a run on one machine reads."""
MEGABYTE = 1_000_000
TEXT_SUFFIXES = frozenset({".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("authors", "copying", "copyright", "licence", "license", "metadata", "notice")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of .txt files and its statistics.

    Attributes:
        folder: path of the folder.
        byte_count: total size of the files.
        line_count: number of lines, each ended by a newline.
        word_count: number of words, separated by Unicode whitespace.
        vocabulary: number of different words.
        repeated: how often this machine's text was repeated to reach the size; 0 is best.
    """

    folder: str
    byte_count: int
    line_count: int
    word_count: int
    vocabulary: int
    repeated: int

    @property
    def pattern(self) -> str:
        """Glob that matches the files."""
        return str(Path(self.folder) / "*.txt")

    @property
    def files(self) -> list[Path]:
        """The files in the order of their text."""
        return sorted(Path(self.folder).glob("*.txt"))

    def lines_for_words(self, word_count: int) -> int:
        """Returns how many lines hold about this many words."""
        return max(1, round(word_count * self.line_count / self.word_count))

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Returns the corpus of a folder, or None if it is missing or incomplete."""
        try:
            found = cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if sum(path.stat().st_size for path in found.files) == found.byte_count else None


def load_corpus(folder: str) -> Corpus:
    """Returns the corpus of a folder.

    Raises:
        FileNotFoundError: it is missing or incomplete.
    """
    corpus = Corpus.load(Path(folder))
    if corpus is None:
        raise FileNotFoundError(f"corpus {folder!r} does not exist; make it with python -m benchmarks.corpus")
    return corpus


def build_corpus(folder: Path, megabytes: float) -> Corpus:
    """Returns the corpus of the folder, which it makes if it is missing; its files never change afterwards.

    Raises:
        OSError: the folder holds something else, or cannot be written.
    """
    folder = folder.resolve()
    found = Corpus.load(folder)
    if found is not None:
        return found
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    repeated = _write_files(unfinished, int(megabytes * MEGABYTE))
    paths = sorted(unfinished.glob("*.txt"))
    counts = count_words(read_lines(paths))
    corpus = Corpus(
        folder=str(folder),
        byte_count=sum(path.stat().st_size for path in paths),
        line_count=sum(1 for _ in read_lines(paths)),
        word_count=counts.total(),
        vocabulary=len(counts),
        repeated=repeated,
    )
    (unfinished / MANIFEST).write_text(json.dumps(asdict(corpus), indent=1), encoding="utf-8")
    unfinished.rename(folder)
    return corpus


def read_lines(paths: Iterable[Path]) -> Iterator[str]:
    r"""Yields the lines of the files in order; only \n ends a line."""
    for path in paths:
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from file


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Returns the independent count: words as `str.split` finds them, line by line."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def count_first_lines(corpus: Corpus, line_count: int) -> Counter[str]:
    """Returns the independent count of the first lines of a corpus."""
    return count_words(islice(read_lines(corpus.files), line_count))


def installed_texts() -> Iterator[str]:
    """Yields this machine's UTF-8 texts in a fixed order, without NULs and byte order marks."""
    library = Path(sysconfig.get_path("stdlib"))
    roots = [Path("/usr/share/common-licenses"), Path("/usr/share/doc")]
    roots += [Path(sysconfig.get_path("purelib")), library]
    seen: set[Path] = set()
    for root in roots:
        for path in sorted(root.rglob("*")):
            name = path.name.lower()
            if path.suffix not in TEXT_SUFFIXES and not name.startswith(TEXT_NAMES):
                continue
            real = path.resolve()
            if real in seen or not real.is_file():
                continue
            seen.add(real)
            try:
                yield real.read_bytes().decode("utf-8-sig").replace("\0", "")
            except (UnicodeDecodeError, PermissionError):
                continue


def _write_files(folder: Path, byte_limit: int) -> int:
    """Writes at least `byte_limit` bytes to files of equal size; returns how often the text was repeated."""
    share = -(-byte_limit // FILE_COUNT)
    written = passes = 0
    texts = installed_texts()
    for number in range(FILE_COUNT):
        with (folder / f"{number}.txt").open("wb") as file:
            while file.tell() < share:
                text = next(texts, None)
                if text is None:
                    if not written:
                        raise FileNotFoundError("this machine has no text to make a corpus from")
                    passes, texts = passes + 1, installed_texts()
                    continue
                packed = (text if text.endswith("\n") else f"{text}\n").encode()
                written += file.write(packed)
    return passes


def copy_passes(corpus: Corpus, folder: Path, pass_count: int) -> str:
    """Fills a folder with `pass_count` copies of each file of the corpus, and returns a glob for them.

    Links would not do: a file counts once, however many names it has.
    """
    folder.mkdir(parents=True)
    for number in range(pass_count):
        for path in corpus.files:
            shutil.copyfile(path, folder / f"{number:03d}-{path.name}")
    return str(folder / "*.txt")


def copy_enough(corpus: Corpus, folder: Path, seconds: float) -> str:
    """Fills a folder as `copy_passes` does, with more than a run can read in that time."""
    return copy_passes(corpus, folder, min(PASSES_MAX, 2 + int(seconds * BYTES_PER_S_MAX / corpus.byte_count)))


def count_first_lines_of_passes(corpus: Corpus, line_count: int) -> Counter[str]:
    """Returns the independent count of the first lines of the repeated corpus."""
    passes, rest = divmod(line_count, corpus.line_count)
    counts = count_first_lines(corpus, rest)
    if passes:
        for word, count in count_words(read_lines(corpus.files)).items():
            counts[word] += passes * count
    return counts


def main() -> None:
    """Makes a corpus and prints its statistics."""
    parser = argparse.ArgumentParser(description="make a corpus from the text installed on this machine")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, default=50.0)
    options = parser.parse_args()
    print(json.dumps(asdict(build_corpus(options.folder, options.megabytes)), indent=1))


if __name__ == "__main__":
    main()
