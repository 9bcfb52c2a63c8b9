"""Counts the words of real text while its driver is killed again and again; the counts are exact each time.

    python -m tests.support.chaos.kill_word_count --megabytes 50 --kills 10

Meanwhile a reader takes the counts and the last committed txid in one atomic step, again and again: they have to
be those of exactly the lines committed so far. In the end they have to be those of all lines.
"""

from __future__ import annotations

import argparse
import random
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import Kill, Site, await_true, kill_at_random_moments, print_summary

TOPOLOGY_ID = "word_count"
TEXT_SUFFIXES = frozenset({".c", ".h", ".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("AUTHORS", "LICENSE", "METADATA", "NOTICE", "copyright")
FILES = 4
LEFTOVER_TIMEOUT_S = 30.0
PAUSE_S = 0.02
PAUSE_FACTOR = 10
"""So many times as long as a read took: large counts must not keep the server busy."""


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
        """Counts of the first transactions; a server that was killed may have lost some, and be asked again."""
        end = min(txid * self._lines_per_batch, len(self._lines))
        if end < self._counted:
            self._counted, self._counts = 0, Counter()
        for line in self._lines[self._counted : end]:
            self._counts.update(line.split())
        self._counted = max(self._counted, end)
        return self._counts


class PrefixReader:
    """Compares what is stored with what has been committed, over and over, until it is stopped.

    Args:
        site: where the server is, if it is there.
        truth: the independent counts.

    Attributes:
        prefixes: txid -> whether the counts read at that txid were exactly those of its lines.
    """

    def __init__(self, site: Site, truth: PrefixCounter) -> None:
        self._site, self._truth = site, truth
        self.prefixes: dict[int, bool] = {}
        self._cost_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prefix-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Reads once."""
        started_s = time.monotonic()
        found = self._site.snapshot("HGETALL", "counts")
        self._cost_s = time.monotonic() - started_s
        if found is not None:
            txid, fields = found
            is_exact = counts_of(fields) == self._truth.up_to(txid)
            self.prefixes[txid] = self.prefixes.get(txid, True) and is_exact

    def _run(self) -> None:
        while not self._stop.wait(max(PAUSE_S, PAUSE_FACTOR * self._cost_s)):
            self.look()


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

    kills: list[Kill]
    prefixes: dict[int, bool]
    is_exact: bool
    said: dict[str, Any]
    words: int
    leftovers: list[int]


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
    reader = PrefixReader(site, truth)
    reader.start()
    try:
        done = kill_at_random_moments(site, kills=kills, total=truth.transactions, draw=random.Random(seed))
        said = site.finish()
        reader.stop()
        with EmbeddedServer(site.data_dir):
            reader.look()
        await_true(lambda: not site.leftovers(), LEFTOVER_TIMEOUT_S)
        return Outcome(
            kills=done,
            prefixes=reader.prefixes,
            is_exact=reader.prefixes.get(truth.transactions, False),
            said=said,
            words=truth.up_to(truth.transactions).total(),
            leftovers=site.leftovers(),
        )
    finally:
        reader.stop()
        site.close()


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
    wrong = sorted(txid for txid, is_exact in outcome.prefixes.items() if not is_exact)
    is_good = outcome.is_exact and not wrong and not outcome.leftovers
    print_summary(
        f"word count, driver killed {len(outcome.kills)} times (seed {options.seed})",
        {
            "text": f"{corpus_bytes:,} bytes, {outcome.words:,} words",
            **{f"kill {number}": kill for number, kill in enumerate(outcome.kills, 1)},
            "atomic reads": f"at {len(outcome.prefixes)} txids, {f'WRONG at {wrong}' if wrong else 'all exact'}",
            "last run": outcome.said,
            "final counts": "exactly those of an independent count" if outcome.is_exact else "WRONG",
            "processes left": outcome.leftovers or "none",
            "seconds": round(time.monotonic() - started_s, 1),
        },
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
