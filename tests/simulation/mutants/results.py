"""Results of hunts, kept in a file: hunts take long, so a table may be made of several rounds of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.simulation.mutants.hunt import Hunt


def read(path: Path) -> dict[str, Hunt]:
    """Returns name -> how its last hunt ended; nothing if there is no such file."""
    if not path.exists():
        return {}
    return {name: Hunt(**kept) for name, kept in json.loads(path.read_text(encoding="utf-8")).items()}


def write(path: Path, hunts: Mapping[str, Hunt]) -> None:
    """Replaces what the file holds."""
    kept = {name: asdict(hunt) for name, hunt in hunts.items()}
    path.write_text(json.dumps(kept, indent=1), encoding="utf-8")
