"""A corpus of real text: licences, documentation and sources of what is installed here, and a plain count of it.

A benchmark on made-up words would flatter everybody: real text has blank lines, long lines, and a
vocabulary that keeps growing. The count is deliberately naive, so that it can serve as the judge.
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
MEGABYTE = 1_000_000
TEXT_SUFFIXES = frozenset({".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("authors", "copying", "copyright", "licence", "license", "metadata", "notice")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of .txt files and what is in them.

    Attributes:
        folder: where the files are.
        byte_count: size of all of them.
        line_count: lines, each ended by a newline.
        word_count: words separated by Unicode whitespace.
        vocabulary: different words.
        repeated: how often the text found on this machine was written again to reach the size; 0 is best.
    """

    folder: str
    byte_count: int
    line_count: int
    word_count: int
    vocabulary: int
    repeated: int

    @property
    def pattern(self) -> str:
        """Glob of the files."""
        return str(Path(self.folder) / "*.txt")

    @property
    def files(self) -> list[Path]:
        """The files in the order of their text."""
        return sorted(Path(self.folder).glob("*.txt"))

    def lines_for_words(self, word_count: int) -> int:
        """How many lines hold about so many words."""
        return max(1, round(word_count * self.line_count / self.word_count))

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The corpus of a folder, or None if it is not there or not complete."""
        try:
            found = cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if sum(path.stat().st_size for path in found.files) == found.byte_count else None


def build_corpus(folder: Path, megabytes: float) -> Corpus:
    """Returns the corpus of the folder, made now if it is not there; its files are never changed afterwards.

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
    r"""The lines of some files, one after the other; only \n ends a line."""
    for path in paths:
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from file


def count_words(lines: Iterable[str]) -> Counter[str]:
    """The independent count: words as `str.split` finds them, line by line."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def count_first_lines(corpus: Corpus, line_count: int) -> Counter[str]:
    """The independent count of the first lines of a corpus."""
    return count_words(islice(read_lines(corpus.files), line_count))


def installed_texts() -> Iterator[str]:
    """The texts of this machine in a fixed order; what is not UTF-8 is left out, NULs and byte order marks too."""
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
    """Writes at least so many bytes in files of equal size; returns how often the text had to start again."""
    share = -(-byte_limit // FILE_COUNT)
    written = passes = 0
    texts = installed_texts()
    for number in range(FILE_COUNT):
        with (folder / f"{number}.txt").open("wb") as file:
            while file.tell() < share:
                text = next(texts, None)
                if text is None:
                    if not written:
                        raise FileNotFoundError("no text was found on this machine to make a corpus of")
                    passes, texts = passes + 1, installed_texts()
                    continue
                packed = (text if text.endswith("\n") else f"{text}\n").encode()
                written += file.write(packed)
    return passes


def main() -> None:
    """Makes a corpus and says what is in it."""
    parser = argparse.ArgumentParser(description="make a corpus of the text installed on this machine")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, default=50.0)
    options = parser.parse_args()
    print(json.dumps(asdict(build_corpus(options.folder, options.megabytes)), indent=1))


if __name__ == "__main__":
    main()
