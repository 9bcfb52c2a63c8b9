"""A virtual environment with a wheel and nothing but what the wheel asks for, made without the network."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

KEPT_VARIABLES = ("HOME", "JAVA_HOME", "LANG", "PATH", "TMPDIR")


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: holds ``bin``.
    """

    folder: Path

    def program(self, name: str) -> str:
        """Returns the path of a program in it."""
        return str(self.folder / "bin" / name)

    def variables(self) -> dict[str, str]:
        """Returns what a user's shell would set, nothing of this checkout."""
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        return {**kept, "PATH": f"{self.folder / 'bin'}:{kept['PATH']}", "VIRTUAL_ENV": str(self.folder)}

    def run(self, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in a folder."""
        return subprocess.run(
            [self.program(command[0]), *command[1:]],
            cwd=folder,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, *arguments: str) -> str:
        """Installs with this process's pip; whatever is required has to be there."""
        pip = [sys.executable, "-m", "pip", "--python", self.program("python"), "install", "--no-index"]
        environment = {**os.environ, "PIP_FIND_LINKS": "", "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run([*pip, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def environment_for(wheel: Path, folder: Path, *, tools: Iterable[str] = ()) -> Environment:
    """Makes an environment with the wheel and its requirements, as ``pip install`` would.

    The requirements, and theirs, are links into the environment of this process: a package that is only in an extra
    of ours is missing, although it is installed here.

    Args:
        wheel: of txbatch.
        folder: becomes the environment.
        tools: names of packages that the test itself needs there.
    """
    venv.create(folder, symlinks=True)
    made = Environment(folder)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    wanted = [*_requirements_of_wheel(wheel), *map(Requirement, tools)]
    for found in _closure(wanted):
        _link(found, site)
    made.install(str(wheel))
    return made


def _requirements_of_wheel(wheel: Path) -> Iterator[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    yield from map(Requirement, metadata.get_all("Requires-Dist", []))


def _closure(requirements: Iterable[Requirement]) -> list[Distribution]:
    """What pip would install for them, of the packages that are installed here."""
    found: dict[str, Distribution] = {}
    todo = [requirement for requirement in requirements if _applies(requirement, {""})]
    seen: set[str] = set()
    while todo:
        requirement = todo.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        installed = distribution(requirement.name)
        found[canonicalize_name(requirement.name)] = installed
        extras = {"", *requirement.extras}
        todo += (needed for needed in map(Requirement, installed.requires or ()) if _applies(needed, extras))
    return [found[name] for name in sorted(found)]


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def _link(found: Distribution, site: Path) -> None:
    """Links each file or folder of a package that stands at the top of site-packages."""
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__"}}
    for top in sorted(tops):
        target = Path(str(found.locate_file(top)))
        if not (site / top).exists():
            (site / top).symlink_to(target)
