"""Builds what a release would have, from a copy of the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests import architecture

ROOT = Path(__file__).resolve().parents[3]
AT_THE_TOP = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md")
FOLDERS = (*architecture.PACKAGES, *architecture.COMPANIONS, "tests")


@dataclass(frozen=True)
class Built:
    """A source archive, and the wheel that was made of that archive alone.

    Attributes:
        left: what the builds left next to the sources, apart from the archives.
    """

    sdist: Path
    wheel: Path
    left: frozenset[str]


def build(folder: Path) -> Built:
    """Builds both in an empty folder."""
    checkout = folder / "checkout"
    checkout.mkdir(parents=True)
    for name in AT_THE_TOP:
        shutil.copy(ROOT / name, checkout)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    before = _names(checkout)
    _run_backend("sdist", checkout)
    (sdist,) = (checkout / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    was_unpacked = _names(unpacked)
    _run_backend("wheel", unpacked)
    (wheel,) = (unpacked / "dist").glob("*.whl")
    left = (_names(checkout) - before) | (_names(unpacked) - was_unpacked)
    return Built(sdist, wheel, left - {"dist"})


def _names(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir())


def _run_backend(product: str, folder: Path) -> None:
    code = f"from setuptools import build_meta; build_meta.build_{product}('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
