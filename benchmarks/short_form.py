"""What does the short form cost? The word count in it, by bolts that take tuples, and by bolts that take columns.

Run it::

    python -m benchmarks.short_form
    python -m benchmarks.short_form --engine spark --rounds 5 --lines 1000

The forms alternate, round after round, over the same text and to its end, each on an empty private server. Without
Spark, the processor time is that of the driver, which does everything, so it says most on a busy machine. Every run's
hash has to be that of a plain `Counter`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product

import redis

from benchmarks.corpus import count_words, read_lines
from benchmarks.harness import Spread, command_line, corpus_of, in_rounds, table
from coordinator import run
from examples import short_forms, word_count, word_count_batches
from state import EmbeddedServer

FORMS = {
    "tuples": word_count.topology,
    "columns": word_count_batches.topology,
    "short form": short_forms.word_count,
}


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("short_form", __doc__, rounds=7, option="--rounds", megabytes=10.0, has_json=False)
    add = parser.add_argument
    add("--lines", type=int, nargs="+", default=[100, 1000], help="lines per transaction (default 100 1000)")
    add("--engine", choices=("local", "spark"), default="local", help="(default %(default)s)")
    return parser.parse_args(arguments)


def measured(form: str, lines: int, pattern: str, engine: str) -> tuple[float, float, dict[str, int]]:
    """Runs one form to the end of the text; returns seconds, processor seconds of the driver, and the counts."""
    topology = FORMS[form](pattern, lines, "word_count")
    with tempfile.TemporaryDirectory() as folder:
        started_s, used_s = time.perf_counter(), time.process_time()
        if engine == "local":
            run(topology, data_dir=folder, engine=engine)
        else:
            run(topology, data_dir=folder, master="local[2]")
        seconds, used_s = time.perf_counter() - started_s, time.process_time() - used_s
        with EmbeddedServer(folder) as server, redis.Redis.from_url(server.url, decode_responses=True) as client:
            return seconds, used_s, {word: int(count) for word, count in client.hgetall("{word_count}:counts").items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints one row per size and form."""
    options = parse_arguments(arguments)
    corpus = corpus_of(options)
    expected = count_words(read_lines(corpus.files))
    found = in_rounds(
        list(product(options.lines, FORMS)),
        lambda case: measured(case[1], case[0], corpus.pattern, options.engine),
        options.rounds,
        shown=lambda case, figures: f"{case[0]}, {case[1]}: {figures[0]:.2f} s, {figures[1]:.2f} s of the driver",
        warms_up=True,
    )
    if any(counts != expected for _, rounds in found for _, _, counts in rounds):
        print("the counts are not those of the text")
        return 1
    rows = [
        [
            form,
            str(lines),
            *Spread.over([r[0] for r in rounds]).cells(".2f"),
            *Spread.over([r[1] for r in rounds]).cells(".2f"),
        ]
        for (lines, form), rounds in found
    ]
    print(table(("form", "lines", "seconds", "spread", "of the driver", "spread"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
