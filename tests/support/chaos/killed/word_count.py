"""Counts the words of real text. Meanwhile a reader takes counts and txid together: they fit at every moment."""

from __future__ import annotations

import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import redis

from tests.support.chaos.killed.case import Case, again_and_again, counts_of, differences

TEXT_SUFFIXES = frozenset({".c", ".h", ".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("AUTHORS", "LICENSE", "METADATA", "NOTICE", "copyright")
FILES = 4
PAUSE_S = 0.02
PAUSE_FACTOR = 10
"""So many times as long as a read took: large counts must not keep the server busy."""


class WordCount(Case):
    """The README's topology over text that this machine has.

    Attributes:
        prefixes: txid -> whether the counts read at that txid were exactly those of its lines.
    """

    size_of, default_size = "bytes", 50_000_000
    LINES = 20

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float, lines_per_batch: int = LINES) -> None:
        super().__init__(folder, size, seed, timeout_s)
        corpus = folder / "corpus"
        corpus.mkdir()
        gather_corpus(corpus, size)
        given = {"input": f"{corpus}/*.txt", "lines_per_batch": lines_per_batch}
        self.site = self.site_of("word_count", "examples.word_count:topology", given)
        self.truth = PrefixCounter(corpus, lines_per_batch)
        self.total = self.truth.transactions
        self.prefixes: dict[int, bool] = {}

    def meanwhile(self) -> AbstractContextManager[object]:
        return again_and_again(self._look)

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        yield from differences(self.state(client, "counts"), self.truth.up_to(self.total))
        yield from (f"torn at txid {txid}" for txid, is_exact in sorted(self.prefixes.items()) if not is_exact)
        self.facts["atomic reads"] = f"at {len(self.prefixes)} txids"

    def _look(self) -> float:
        started_s = time.monotonic()
        found = self.site.snapshot("HGETALL", "counts")
        cost_s = time.monotonic() - started_s
        if found is not None:
            txid, fields = found
            is_exact = counts_of(fields) == self.truth.up_to(txid)
            self.prefixes[txid] = self.prefixes.get(txid, True) and is_exact
        return max(PAUSE_S, PAUSE_FACTOR * cost_s)


def gather_corpus(folder: Path, byte_count: int) -> None:
    """Fills a folder with text: licences, documentation and sources of what is installed, again if it takes more."""
    texts = list(_installed_texts(byte_count))
    parts: list[list[bytes]] = [[] for _ in range(FILES)]
    gathered, number = 0, 0
    while gathered < byte_count:
        text = texts[number % len(texts)]
        parts[min(FILES - 1, FILES * gathered // byte_count)].append(text)
        gathered += len(text)
        number += 1
    for number, part in enumerate(parts):
        (folder / f"{number}.txt").write_bytes(b"".join(part))


def _installed_texts(byte_count: int) -> Iterator[bytes]:
    """Yields contents of text files, each ending its last line, up to so many bytes."""
    for root in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), "/usr/share/doc", "/usr/share"):
        for path in sorted(Path(root).rglob("*")):
            if byte_count <= 0:
                return
            if not path.is_file() or not (path.suffix in TEXT_SUFFIXES or path.name.startswith(TEXT_NAMES)):
                continue
            try:
                content = path.read_bytes()
                content.decode()
            except (OSError, UnicodeDecodeError):
                continue
            byte_count -= len(content) + 1
            yield content + b"\n"


class PrefixCounter:
    """Counts words independently of txbatch, transaction by transaction."""

    def __init__(self, corpus: Path, lines_per_batch: int) -> None:
        self._lines = [
            line
            for path in sorted(corpus.glob("*.txt"))
            if path.stat().st_size  # an empty file has no line, not one empty line
            for line in path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        ]
        self._lines_per_batch = lines_per_batch
        self._counted = 0
        self._counts: Counter[str] = Counter()

    @property
    def transactions(self) -> int:
        return -(-len(self._lines) // self._lines_per_batch)

    def up_to(self, txid: int) -> Counter[str]:
        """Returns the counts of the first transactions; a server that was killed may have lost some."""
        end = min(txid * self._lines_per_batch, len(self._lines))
        if end < self._counted:
            self._counted, self._counts = 0, Counter()
        for line in self._lines[self._counted : end]:
            self._counts.update(line.split())
        self._counted = max(self._counted, end)
        return self._counts
