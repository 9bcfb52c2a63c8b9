"""What does the short form cost? Five examples in both forms, the word count by columns too.

Run it::

    python -m benchmarks.short_form
    python -m benchmarks.short_form --engine spark --rounds 5 --batch 1000 --job top_k ledger

The forms alternate, round after round, over the same input and to its end, each on an empty private server. Without
Spark, the processor time is that of the driver, which does everything, so it says most on a busy machine. All forms of
a job have to leave the same state, and the word count that of a plain `Counter`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import redis

from benchmarks.corpus import count_words, read_lines
from benchmarks.harness import Spread, command_line, corpus_of, in_rounds, table
from coordinator import run
from examples import clickstream, dedupe, ledger, short_forms, top_k, word_count, word_count_batches
from state import EmbeddedServer

FORMS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "word_count": {
        "tuples": word_count.topology,
        "columns": word_count_batches.topology,
        "short form": short_forms.word_count,
    },
    "clickstream": {"classes": clickstream.topology, "short form": short_forms.clickstream},
    "top_k": {"classes": top_k.topology, "short form": short_forms.top_k},
    "dedupe": {"classes": dedupe.topology, "short form": short_forms.dedupe},
    "ledger": {"classes": ledger.topology, "short form": short_forms.ledger},
}
MAKERS: Mapping[str, tuple[Callable[[Path, int], Any], int, str]] = {
    "clickstream": (clickstream.make_data, 200_000, "*.json.gz"),
    "top_k": (top_k.make_data, 100_000, "*.csv"),
    "dedupe": (dedupe.make_data, 100_000, "*.jsonl"),
    "ledger": (ledger.make_data, 50_000, "*.jsonl"),
}
"""Job -> what makes its input, how much of it, and the pattern of its files."""
READS = {"HASH": "hgetall", "SET": "smembers", "STRING": "get"}

Held = dict[str, Any]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("short_form", __doc__, rounds=7, option="--rounds", megabytes=10.0, has_json=False)
    add = parser.add_argument
    add("--job", nargs="+", choices=FORMS, default=["word_count"], help="(default word_count)")
    add("--batch", type=int, nargs="+", default=[100, 1000], help="records per transaction (default 100 1000)")
    add("--engine", choices=("local", "spark"), default="local", help="(default %(default)s)")
    return parser.parse_args(arguments)


def measured(job: str, form: str, batch: int, pattern: str, engine: str) -> tuple[float, float, Held]:
    """Runs one form to the end of its input; returns seconds, processor seconds of the driver, and the state."""
    topology = FORMS[job][form](pattern, batch, job)
    with tempfile.TemporaryDirectory() as folder:
        started_s, used_s = time.perf_counter(), time.process_time()
        if engine == "local":
            run(topology, data_dir=folder, engine=engine)
        else:
            run(topology, data_dir=folder, master="local[2]")
        seconds, used_s = time.perf_counter() - started_s, time.process_time() - used_s
        with EmbeddedServer(folder) as server, redis.Redis.from_url(server.url, decode_responses=True) as client:
            return seconds, used_s, held(client, job)


def held(client: Any, job: str) -> Held:
    """Returns key -> content of every state of a topology."""
    keys = [key for key in client.keys(f"{{{job}}}:*") if not key.startswith(f"{{{job}}}:txbatch:")]
    return {key: _content(client, key) for key in keys}


def _content(client: Any, key: str) -> Any:
    kind = client.type(key).upper()
    if kind == "ZSET":
        return client.zrange(key, 0, -1, withscores=True)
    return getattr(client, READS[kind])(key)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints one row per job, size and form."""
    options = parse_arguments(arguments)
    corpus = corpus_of(options)
    patterns = {"word_count": corpus.pattern}
    for job in set(options.job) - {"word_count"}:
        make, count, pattern = MAKERS[job]
        folder = options.work_dir / f"{job}-{count}"
        if not folder.exists():
            make(folder, count)
        patterns[job] = f"{folder}/{pattern}"
    found = in_rounds(
        [(job, batch, form) for job in options.job for batch in options.batch for form in FORMS[job]],
        lambda case: measured(case[0], case[2], case[1], patterns[case[0]], options.engine),
        options.rounds,
        shown=lambda case, figures: f"{case[0]}, {case[1]}, {case[2]}: {figures[0]:.2f} s, {figures[1]:.2f} s driver",
        warms_up=True,
    )
    states: dict[str, Held] = {}
    if "word_count" in options.job:
        counts = count_words(read_lines(corpus.files))
        states["word_count"] = {"{word_count}:counts": {word: str(count) for word, count in counts.items()}}
    for (job, batch, form), rounds in found:
        if any(state != states.setdefault(job, state) for _, _, state in rounds):
            print(f"{job}, {batch}, {form}: the state is another one")
            return 1
    rows = [
        [
            job,
            form,
            str(batch),
            *Spread.over([r[0] for r in rounds]).cells(".2f"),
            *Spread.over([r[1] for r in rounds]).cells(".2f"),
        ]
        for (job, batch, form), rounds in found
    ]
    print(table(("job", "form", "batch", "seconds", "spread", "of the driver", "spread"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
