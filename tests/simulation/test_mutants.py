"""Planted bugs die: the quickest in every run of the tests, all of them with TXBATCH_MUTANTS=all.

``python -m tests.simulation.mutants`` hunts any of them, and writes docs/mutants.md.
"""

from __future__ import annotations

import os

import pytest

from state import redis_connection
from state.redis_connection import library_code
from tests.simulation.causes import Causes
from tests.simulation.fault_plan import Strike
from tests.simulation.invariants import ViolatedError
from tests.simulation.mutants.catalogue import MUTANTS, THEMES
from tests.simulation.mutants.hunt import hunt
from tests.simulation.mutants.mutant import SIMULATION, together
from tests.simulation.mutants.patch import LIBRARY, ROOT, Patch, PatchError, mutated, planted
from tests.simulation.mutants.store import NO_FENCE, NO_REVISION
from tests.simulation.mutants.table import markdown
from state.errors import FencedError, StateRefusedError, StateUnreachableError

QUICK = ()
"""Found by one of the first seeds; together less than a minute on a quiet machine."""
HUNTED = [*MUTANTS] if os.environ.get("TXBATCH_MUTANTS") == "all" else [*QUICK]
LOOK_FOR = int(os.environ.get("TXBATCH_MUTANT_SEEDS", "400"))
"""A mutant has to be found within this many seeds."""
