"""The demo: counts the words of real text exactly once, and shows that Redis holds the right answer.

It gathers text from the packages installed in .venv, counts its words with `txbatch run` on the embedded
server, reads the counts back from Redis and compares them with a plain count of the same files. Kill it
at any time and start it again: the run continues after the last commit. `make demo` starts it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import redis
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from state import EmbeddedServer
from state.printable import counted

TOPOLOGY_ID = "demo"  # not the example's own, so that users run that next to the demo on one server
COUNTS_KEY = f"{{{TOPOLOGY_ID}}}:counts"
DATA_DIR = Path(".txbatch")
TEXT_SUFFIXES = frozenset({".md", ".py", ".pyi", ".rst", ".txt"})
TEXT_NAMES = ("AUTHORS", "LICENSE", "METADATA", "NOTICE")
FILE_COUNT = 8
WORDS_SHOWN = 10
INTERRUPTED = 130

console = Console(highlight=False)


def installed_lines() -> Iterator[str]:
    """Yields the lines of the installed packages' licences, descriptions and sources, in a fixed order."""
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*")):
        if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name.startswith(TEXT_NAMES)):
            try:
                yield from path.read_text(encoding="utf-8").split("\n")
            except UnicodeDecodeError:
                continue


def gather_input(folder: Path, line_count: int) -> None:
    """Fills the folder unless it exists: the input of a job must not change while the job runs."""
    if folder.exists():
        return
    console.print(f"Gathering {line_count:,} lines of text from the packages in .venv …")
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    lines = islice(installed_lines(), line_count)
    for number in range(FILE_COUNT):
        part = islice(lines, -(-line_count // FILE_COUNT))
        with (unfinished / f"{number}.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in part)
    unfinished.rename(folder)


def run_job(pattern: str, data_dir: Path) -> dict[str, Any]:
    """Runs the job, with its progress bar on our standard error, and returns its summary.

    Raises:
        SystemExit: the job failed, or was interrupted or killed; has the exit code that a shell would report.
    """
    arguments = ["run", "examples.word_count:topology", "-p", f"input={pattern}", "-p", f"topology_id={TOPOLOGY_ID}"]
    arguments += ["--data-dir", str(data_dir), "--json"]
    console.print(f"$ txbatch {' '.join(arguments)}", style="bold", markup=False, soft_wrap=True)
    command = [str(Path(sys.executable).with_name("txbatch")), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        try:
            output, _ = job.communicate()
        except KeyboardInterrupt:  # the terminal has sent it to the job too, which ends on its own
            job.wait()
            give_up("was interrupted", INTERRUPTED)
    if job.returncode < 0:
        give_up(f"was killed by signal {-job.returncode}", 128 - job.returncode)
    if job.returncode > 0:
        give_up(f"ended with exit code {job.returncode}", job.returncode)
    summary: dict[str, Any] = json.loads(output.splitlines()[-1])
    return summary


def give_up(how: str, code: int) -> NoReturn:
    """Ends the demo because the job ended early."""
    console.print(f"\nThe job {how}. Run make demo again: it continues after the last commit.")
    raise SystemExit(code)


def read_counts(data_dir: Path) -> dict[str, int]:
    """Reads the counts back, as any Redis client would."""
    with EmbeddedServer(data_dir) as server, redis.from_url(server.url, decode_responses=True) as client:
        return {word: int(count) for word, count in client.hgetall(COUNTS_KEY).items()}


def count_independently(folder: Path) -> Counter[str]:
    """Counts the same files with nothing but Python."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.txt")):
        counts.update(path.read_text(encoding="utf-8").split())
    return counts


def show(counts: dict[str, int], expected: Counter[str]) -> None:
    """Prints the most frequent words, and the totals of both counts side by side."""
    table = Table("word", title=f"HGETALL {COUNTS_KEY}")
    table.add_column("in Redis", justify="right")
    table.add_column("counted independently", justify="right")
    for word, count in Counter(counts).most_common(WORDS_SHOWN):
        table.add_row(escape(word), f"{count:,}", f"{expected[word]:,}")
    table.add_section()
    table.add_row("words in all", f"{sum(counts.values()):,}", f"{expected.total():,}")
    table.add_row("different words", f"{len(counts):,}", f"{len(expected):,}")
    console.print(table)


def next_steps(data_dir: Path) -> str:
    """Returns three things to try after the demo."""
    where = "" if data_dir == DATA_DIR else f" --data-dir {data_dir}"
    steps = {
        f"txbatch drop {TOPOLOGY_ID}{where}": "then make demo again, and kill -9 it half-way: the next one continues",
        f"txbatch verify {TOPOLOGY_ID}{where}": "check that nothing of what is stored is damaged",
        "txbatch init visits": "write a small project of your own, with its tests",
    }
    width = max(map(len, steps))
    lines = [f"  {command:<{width}}  {what}" for command, what in steps.items()]
    return "\n".join(["Three things to try next, with .venv/bin on your PATH:", *lines])


def main() -> int:
    """Runs the demo; returns 0 if Redis holds exactly what an independent count finds."""
    parser = argparse.ArgumentParser(description="count words exactly once, and prove it")
    parser.add_argument("--lines", type=int, default=300_000, help="how much text to gather the first time")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR, help="holds the text and the server's data")
    options = parser.parse_args()
    folder = options.data_dir / "demo-input"

    gather_input(folder, options.lines)
    summary = run_job(f"{folder}/*.txt", options.data_dir)
    if summary["committed"] == 0:
        console.print(f"\nEverything was committed already, up to transaction {summary['last_txid']:,}.\n")
    else:
        console.print(f"\n{counted(summary['committed'], 'transaction')} committed in {summary['seconds']:.1f} s.\n")

    counts, expected = read_counts(options.data_dir), count_independently(folder)
    show(counts, expected)
    if counts != expected:
        console.print(f"The counts differ, which must never happen. Please report it and keep {options.data_dir}.")
        return 1
    console.print(f"Equal: each of {counted(len(counts), 'word')} has its exact count.\n")
    console.print(next_steps(options.data_dir), markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
