"""Makes sure that ``import state`` means ours.

The name is an ordinary word. If another module of that name comes first on the path, the next import
would fail with a riddle; this says what has happened.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

COMMAND = "txbatch"
USAGE_EXIT_CODE = 2


def require_own_packages() -> None:
    """Called by the packages that import others, before they do.

    Raises:
        ImportError: ``state`` is somebody else's module.
        SystemExit: so it is, and the ``txbatch`` script imports us, which could not catch anything yet.
    """
    home = Path(__file__).parent.parent
    found = importlib.import_module("state").__file__
    if found is None or Path(found).parent.parent != home:
        sentence = (
            f"import state finds {found or 'a folder without __init__.py'}, not txbatch's own package in "
            f"{home / 'state'}; rename it, or take its folder off sys.path and PYTHONPATH"
        )
        if Path(sys.argv[0]).name == COMMAND:
            sys.stderr.write(f"{COMMAND}: {sentence}\n")
            raise SystemExit(USAGE_EXIT_CODE)
        raise ImportError(sentence)
