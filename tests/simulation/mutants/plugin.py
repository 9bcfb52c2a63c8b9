"""Plants a mutant in a process of pytest.

``TXBATCH_MUTANT=<name> python -m pytest -p tests.simulation.mutants.plugin`` runs any test with it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import VARIABLE
from tests.simulation.mutants.patch import planted

_PLANTED = ExitStack()


def pytest_configure(config: Any) -> None:
    """Plants it before any test is collected."""
    _PLANTED.enter_context(planted(MUTANTS[os.environ[VARIABLE]].patches))


def pytest_unconfigure(config: Any) -> None:
    """Takes it out again."""
    _PLANTED.close()
