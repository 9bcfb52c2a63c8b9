"""Counts the words of real text while its driver is killed again and again; the counts are exact each time.

    python -m tests.chaos.kill_word_count --megabytes 50 --kills 10

Directly before each kill the counts and the last committed txid are read in one atomic step, and have to be
those of exactly the lines committed so far. In the end they have to be those of all lines.
"""

from __future__ import annotations

import argparse
import random
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from state import EmbeddedServer
from tests.chaos.jobs import Kill, Site, await_true, kill_at_random_moments, print_summary

TOPOLOGY_ID = "word_count"
TEXT_SUFFIXES = frozenset({".c", ".h", ".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("AUTHORS", "LICENSE", "METADATA", "NOTICE", "copyright")
FILES = 4
LEFTOVER_TIMEOUT_S = 30.0


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
    """Contents of text files, each ending its last line, up to so many bytes."""
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
            for line in path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        ]
        self._lines_per_batch = lines_per_batch
        self._counted = 0
        self._counts: Counter[str] = Counter()

    @property
    def transactions(self) -> int:
        return -(-len(self._lines) // self._lines_per_batch)

    def up_to(self, txid: int) -> Counter[str]:
        """Counts of the first transactions; ask for no lower txid than before."""
        end = min(txid * self._lines_per_batch, len(self._lines))
        for line in self._lines[self._counted : end]:
            self._counts.update(line.split())
        self._counted = max(self._counted, end)
        return self._counts


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: every kill.
        prefixes: txid -> whether the counts read at that txid were exactly those of its lines.
        is_exact: whether the final counts are.
        said: the last run's JSON.
        words: how many words there are.
        leftovers: processes that were still there in the end.
    """

    kills: list[Kill] = field(default_factory=list)
    prefixes: dict[int, bool] = field(default_factory=dict)
    is_exact: bool = False
    said: dict[str, Any] = field(default_factory=dict)
    words: int = 0
    leftovers: list[int] = field(default_factory=list)


def counts_of(fields: Any) -> Counter[str]:
    """A hash as a counter, from the client's answer to HGETALL."""
    pairs = fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
    return Counter({field.decode(): int(value) for field, value in pairs})


def kill_word_count(
    folder: Path, *, megabytes: float, kills: int, seed: int, lines_per_batch: int, max_pending: int, timeout_s: float
) -> Outcome:
    """Gathers a corpus in the folder, counts it under fire, and compares."""
    corpus = folder / "corpus"
    if not corpus.exists():
        corpus.mkdir()
        gather_corpus(corpus, int(megabytes * 1_000_000))
    parameters = ["-p", f"input={corpus}/*.txt", "-p", f"lines_per_batch={lines_per_batch}"]
    arguments = ["examples.word_count:topology", *parameters, "--max-pending", str(max_pending)]
    site = Site(folder, TOPOLOGY_ID, arguments, timeout_s)
    truth = PrefixCounter(corpus, lines_per_batch)
    outcome = Outcome()

    def compare() -> None:
        found = site.snapshot("HGETALL", "counts")
        if found is not None:
            outcome.prefixes[found[0]] = counts_of(found[1]) == truth.up_to(found[0])

    try:
        draw = random.Random(seed)
        outcome.kills = kill_at_random_moments(
            site, kills=kills, total=truth.transactions, draw=draw, before_kill=compare
        )
        outcome.said = site.finish()
        with EmbeddedServer(site.data_dir):
            compare()
        all_words = truth.up_to(truth.transactions)
        outcome.is_exact = outcome.prefixes.get(truth.transactions, False)
        outcome.words = all_words.total()
        await_true(lambda: not site.leftovers(), LEFTOVER_TIMEOUT_S)
        outcome.leftovers = site.leftovers()
    finally:
        site.close()
    return outcome


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=float, default=50.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines-per-batch", type=int, default=1000)
    parser.add_argument("--max-pending", type=int, default=64)
    parser.add_argument("--timeout-s", type=float, default=1800.0)
    parser.add_argument("--folder", type=Path, help="kept; the default is a temporary one")
    options = parser.parse_args()
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="txbatch-chaos-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = kill_word_count(
            folder,
            megabytes=options.megabytes,
            kills=options.kills,
            seed=options.seed,
            lines_per_batch=options.lines_per_batch,
            max_pending=options.max_pending,
            timeout_s=options.timeout_s,
        )
        corpus_bytes = sum(path.stat().st_size for path in (folder / "corpus").iterdir())
    is_good = outcome.is_exact and all(outcome.prefixes.values()) and not outcome.leftovers
    print_summary(
        f"word count, driver killed {len(outcome.kills)} times (seed {options.seed})",
        {
            "text": f"{corpus_bytes:,} bytes, {outcome.words:,} words",
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            "atomic reads before kills": ", ".join(
                f"txid {txid} {'exact' if exact else 'WRONG'}" for txid, exact in sorted(outcome.prefixes.items())
            ),
            "last run": outcome.said,
            "final counts": "exactly those of an independent count" if outcome.is_exact else "WRONG",
            "processes left": outcome.leftovers or "none",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
