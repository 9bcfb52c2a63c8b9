"""Makes sure that ``import state`` means ours.

The name is an ordinary word. If another module of that name comes first on the path, the next import
would fail with a riddle; this says what has happened.
"""

from __future__ import annotations

import importlib
from pathlib import Path


def require_own_packages() -> None:
    """Called by the packages that import others, before they do.

    Raises:
        ImportError: ``state`` is somebody else's module.
    """
    home = Path(__file__).parent.parent
    found = importlib.import_module("state").__file__
    if found is None or Path(found).parent.parent != home:
        raise ImportError(
            f"import state finds {found or 'a folder without __init__.py'}, not txbatch's own package in "
            f"{home / 'state'}; rename it, or take its folder off sys.path and PYTHONPATH"
        )
