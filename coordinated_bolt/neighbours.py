"""Checks that ``import state`` finds txbatch's own package.

The name is an ordinary word. If the path leads to another module of that name first, the next import
would fail with a puzzling error; this one says what has happened.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

COMMAND = "txbatch"
USAGE_EXIT_CODE = 2


def require_own_packages() -> None:
    """Checks the path; packages that import other packages call this first.

    Raises:
        ImportError: ``state`` is somebody else's module.
        SystemExit: the same, in the ``txbatch`` script, which cannot catch anything yet.
    """
    home = Path(__file__).parent.parent
    found = importlib.import_module("state").__file__
    if found is None or Path(found).parent.parent != home:
        sentence = (
            f"import state finds {found or 'a folder without __init__.py'}, not txbatch's own package in "
            f"{home / 'state'}; rename it, or remove its folder from sys.path and PYTHONPATH"
        )
        if Path(sys.argv[0]).name == COMMAND:
            sys.stderr.write(f"{COMMAND}: {sentence}\n")
            raise SystemExit(USAGE_EXIT_CODE)
        raise ImportError(sentence)
