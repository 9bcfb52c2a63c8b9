"""Strikes at real drivers, servers and Spark processes for some minutes, and looks whether any transaction suffers.

    python -m tests.support.chaos.nemesis --minutes 10 --seed 1 --record figures.json

Figures are added to those that the file has already, so a large number can be reached in many calls. Nothing outlives
a call but the file: processes are ended by their ids, folders are temporary, everything listens on loopback only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from state.redis_server.program import find_server_program
from tests.support.chaos.nemesis.arenas import ARENAS, MissingError, opened
from tests.support.chaos.nemesis.campaign import Campaign
from tests.support.chaos.nemesis.history import CHECKER
from tests.support.chaos.nemesis.planted_bugs import BUGS
from tests.support.chaos.nemesis.record import Record
from tests.support.chaos.nemesis.verifier import Complaint

SHARES = {"process": 0.35, "failover": 0.2, "disk": 0.05, "spark": 0.25, "cluster": 0.15}
"""Which part of the time each arena gets."""


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0, help="about how long; a battle is fought to its end")
    parser.add_argument("--seed", type=int, default=1, help="of all choices; what the machine does with them differs")
    parser.add_argument("--arenas", default=",".join(SHARES), help=f"of {', '.join(ARENAS)}")
    parser.add_argument("--record", type=Path, help="file of figures to add to")
    parser.add_argument("--program", help="redis-server or valkey-server; the default is the embedded server's")
    parser.add_argument("--bug", default="", choices=["", *BUGS], help="plant a bug, which has to be found")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if anything was wrong."""
    given = options(arguments)
    record = Record()
    names = given.arenas.split(",")
    shares = sum(SHARES[name] for name in names)
    if not CHECKER.exists():
        print("histories are not checked; run tools/bootstrap.sh go", file=sys.stderr)  # noqa: T201
    started_s = time.monotonic()
    for name in names:
        seconds = 60.0 * given.minutes * SHARES[name] / shares
        _fight(name, given, seconds, record)
    record.calls.append(
        {
            "seed": given.seed,
            "arenas": names,
            "program": Path(given.program or find_server_program()).name,
            "seconds": round(time.monotonic() - started_s),
            "ended": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        }
    )
    if given.record:
        summed = Record.from_file(given.record)
        summed.add(record)
        given.record.write_text(summed.to_json(), encoding="utf-8")
    print(json.dumps(record.__dict__) if given.json else record.to_table())  # noqa: T201 - a command's output
    for sentence in record.sentences:
        print(sentence, file=sys.stderr)  # noqa: T201
    return int(bool(record.complaints))


def _fight(name: str, given: argparse.Namespace, seconds: float, record: Record) -> None:
    program = given.program or find_server_program()
    try:
        with opened(name, program) as arena:
            campaign = Campaign(arena, Random(f"{given.seed} {name}"), record, bug=given.bug)
            campaign.play_until(time.monotonic() + seconds)
    except MissingError as error:
        print(f"skipped {name}: {error}", file=sys.stderr)  # noqa: T201
        return
    if arena.left:
        record.complaints["left behind"] += 1
        record.sentences.append(Complaint("left behind", f"processes {arena.left} of {name}").sentence)


if __name__ == "__main__":
    sys.exit(main())
