"""Checks that ``import state`` and its like find txbatch's own packages.

The names are ordinary words. If the path has another module of such a name first, the next import would fail with a
puzzling error; this check explains it. The ``txbatch`` script begins here, because of the four package names only this
one is unlikely to be taken.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
COMMAND = "txbatch"
USAGE_EXIT_CODE = 2


def require_own_packages() -> None:
    """Checks the path; packages that import other packages call this first.

    Raises:
        ImportError: one of the packages is somebody else's module.
        SystemExit: the same, in the ``txbatch`` script, which cannot catch anything yet.
    """
    home = Path(__file__).parent.parent
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        found = None if spec is None else spec.origin
        if found is not None and Path(found).parent == home / name:
            continue
        sentence = (
            f"import {name} finds {found or 'a folder without __init__.py'}, not txbatch's own package in "
            f"{home / name}; rename it, or remove its folder from sys.path and PYTHONPATH"
        )
        if Path(sys.argv[0]).name == COMMAND:
            sys.stderr.write(f"{COMMAND}: {sentence}\n")
            raise SystemExit(USAGE_EXIT_CODE)
        raise ImportError(sentence)


def main() -> None:
    """Runs the ``txbatch`` command; called by its script, once the packages are known to be txbatch's."""
    importlib.import_module("coordinator.operating.cli").main()
