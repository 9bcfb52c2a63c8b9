"""Logs that are written, renamed, rotated, packed, copied and cut off, linked, at every moment, under runs that die.

The model knows nothing of how files are recognised: every line has a number of its own and is written once, so each has
to arrive once. Only what cannot be told may stop a run, and then it is named.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator import LocalCluster
from state import SourceError
from tests.support.sources.addresses import Address
from tests.support.sources.growing_folder import Keep, submit

SEEDS = int(os.environ.get("TXBATCH_ROTATION_SEEDS", "20"))
FIRST = int(os.environ.get("TXBATCH_ROTATION_FIRST", "0"))
"""The first seed; another one every night."""
STEPS = 25
ERRORS = 5
PAD = "x" * 200
"""With six lines a file has enough content to be known again by that alone."""


class Logs:
    """A folder of logs, and the lines that readers are owed."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.folder, self.draw = folder, draw
        self.owed: list[str] = []
        self.lost: set[str] = set()
        self.number = 0

    def plain(self) -> list[Path]:
        return sorted(p for p in self.folder.iterdir() if p.suffix != ".gz" and not p.is_symlink() and p.stat().st_size)

    def any_plain(self) -> Path:
        return self.draw.choice(self.plain() or [self.write()])

    def any_of_one_name(self) -> Path:
        """A copy of a file that stays under another name is another file, whoever made it."""
        return self.draw.choice([path for path in self.plain() if path.stat().st_nlink == 1] or [self.write()])

    def lines(self) -> bytes:
        fresh = [f"{len(self.owed) + number}{PAD}" for number in range(self.draw.randint(6, 9))]
        self.owed += fresh
        return "".join(f"{line}\n" for line in fresh).encode()

    def write(self) -> Path:
        self.number += 1
        path = self.folder / f"app{self.number}.log"
        path.write_bytes(self.lines())
        return path

    def append(self) -> None:
        with self.any_plain().open("ab") as file:
            file.write(self.lines())

    def rename(self) -> None:
        path = self.any_plain()
        self.number += 1
        path.rename(path.with_name(f"{path.name.partition('.')[0]}.log.{100 + self.number}"))

    def rotate(self) -> None:
        """Numbers move up by one, and the name without a number is used again."""
        live = [path for path in self.plain() if path.suffix == ".log"] or [self.write()]
        path = self.draw.choice(live)
        numbered = [path.with_name(f"{path.name}.{age}") for age in (1, 2, 3)]
        if numbered[2].exists():
            self.number += 1
            numbered[2].rename(path.with_name(f"{path.name}.{100 + self.number}"))
        for older, oldest in ((numbered[1], numbered[2]), (numbered[0], numbered[1])):
            if older.exists():
                older.rename(oldest)
        path.rename(numbered[0])
        path.write_bytes(self.lines())

    def pack(self) -> None:
        path = self.any_of_one_name()
        packed = path.with_name(path.name + ".gz")
        if not packed.exists():
            packed.write_bytes(gzip.compress(path.read_bytes()))
            shutil.copystat(path, packed)
            path.unlink()

    def copy_and_cut_off(self) -> None:
        path = self.any_of_one_name()
        self.number += 1
        shutil.copy(path, path.with_name(f"{path.name.partition('.')[0]}.log.{100 + self.number}"))
        os.truncate(path, 0)

    def link(self) -> None:
        self.number += 1
        (self.folder / f"link{self.number}.log").symlink_to(self.any_plain().name)

    def second_name(self) -> None:
        path = self.any_plain()
        self.number += 1
        os.link(path, path.with_name(f"a{self.number}.log"))
        if self.draw.random() < 0.5:
            path.unlink()

    def cut_off(self) -> None:
        """What was not read is lost; nobody can tell this from a copy that was made elsewhere."""
        path = self.any_plain()
        self.lost.update(path.read_text().split())
        path.write_bytes(self.lines() if self.draw.random() < 0.5 else b"")


FOLLOWED = [Logs.write, Logs.append, Logs.rename, Logs.rotate, Logs.pack, Logs.copy_and_cut_off]
NAMED = [*FOLLOWED, Logs.link, Logs.second_name, Logs.cut_off]


def play(folder: Path, seed: int, changes: list[Any], *, prefix: str = "") -> tuple[Counter[str], Logs, list[str]]:
    """Returns what was committed, what was written, and the errors of runs; after one, another run goes on."""
    draw = Random(seed)
    logs = Logs(folder, draw)
    given: dict[str, Any] = {
        "pattern": "*.log*",
        "complete": "quiet",
        "quiet_s": 0.0,
        "lines_per_batch": draw.choice([2, 5, 20]),
    }
    place: Any = Address(f"{prefix}{folder}")
    errors: list[str] = []
    with LocalCluster(seed=seed) as cluster:
        run = None
        for number in range(STEPS + ERRORS):
            try:
                run = run or submit(cluster, place, **given)
                if number < STEPS:
                    draw.choice(changes)(logs)
                    for _ in range(draw.choice([0, 1, 3, 8, 20, 60])):
                        run.tick()
                else:
                    run.run_until_idle()
                if draw.random() < 0.2:
                    run.close()  # as a process that dies: what was cut and is not committed is replayed
                    run = None
            except SourceError as stopped:
                errors.append(str(stopped))
                if run is not None:
                    run.close()
                run = None
        found = cluster.client.lrange("{growing}:lines", 0, -1)
        return Counter(line.decode() if isinstance(line, bytes) else line for line in found), logs, errors


MENDED = (33, 135, 138, 169, 170, 186, 259, 294, 358, 438, 1282, 66829, 66879)
"""Seeds that have lost or doubled lines: names given again while a file waits, or a run dies; an inode given again."""
PLAYED = sorted({*range(FIRST, FIRST + SEEDS), *MENDED})


PLACES = pytest.mark.parametrize("prefix", ["", "file://"], ids=["path", "address"])


@PLACES
@pytest.mark.parametrize("seed", PLAYED)
def test_every_line_arrives_once_whatever_becomes_of_its_file(tmp_path: Path, seed: int, prefix: str) -> None:
    """A run that is in the middle of a log that is cut off stops, at worst, and the next one goes on in the copy."""
    Keep.hated = ""
    found, logs, errors = play(tmp_path, seed, FOLLOWED, prefix=prefix)
    assert [line[:9] for line, count in found.items() if count > 1] == [], errors
    assert all(str(tmp_path) in error for error in errors)
    missing = [line[:9] for line in logs.owed if line not in found]
    assert not missing or all("put the file back" in error or "restore the input" in error for error in errors[-2:])
    assert not missing or errors


@pytest.mark.parametrize("seed", PLAYED)
def test_no_run_stops_for_the_names_that_logs_get(tmp_path: Path, seed: int) -> None:
    Keep.hated = ""
    found, logs, errors = play(tmp_path, seed, [Logs.write, Logs.append, Logs.rename, Logs.rotate])
    assert (errors, found) == ([], Counter(logs.owed))


@PLACES
@pytest.mark.parametrize("seed", PLAYED)
def test_no_line_arrives_twice_and_what_cannot_be_told_is_named(tmp_path: Path, seed: int, prefix: str) -> None:
    Keep.hated = ""
    found, logs, errors = play(tmp_path, seed, NAMED, prefix=prefix)
    assert [line[:9] for line, count in found.items() if count > 1] == []
    assert all(str(tmp_path) in error for error in errors)
    missing = [line[:9] for line in logs.owed if line not in found and line not in logs.lost]
    assert errors or not missing
