"""The jars of a Kafka broker: fetched once by Maven, kept in the user's cache, checked by their digests at each use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FETCH_TIMEOUT_S = 300.0
VERSION = "4.3.1"


class NoBrokerError(RuntimeError):
    """This machine cannot run a broker; the text says what is missing."""


def broker_jars() -> Path:
    """The folder with the broker's jars; fetches them if it is not there, about 44 MB.

    Raises:
        NoBrokerError: Maven is missing or cannot fetch them, or what it fetched is not what we know.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "txbatch"
    folder = cache / f"kafka-{VERSION}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as scratch:
            _fetch(Path(scratch, "jars"))
            _check(Path(scratch, "jars"))
            try:
                Path(scratch, "jars").rename(folder)  # whole or not at all, also when two fetch at once
            except OSError:
                if not folder.is_dir():
                    raise
    _check(folder)
    return folder


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBrokerError("Maven is missing, which fetches the Kafka broker; install maven")
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), *copy]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False, cwd=folder.parent
        )
    except subprocess.TimeoutExpired:
        raise NoBrokerError(f"Maven did not fetch the Kafka broker within {FETCH_TIMEOUT_S:g} s") from None
    if ended.returncode:
        raise NoBrokerError(f"Maven could not fetch the Kafka broker:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")


def _check(folder: Path) -> None:
    """Compares the folder with what we know, name by name and digest by digest."""
    lines = (HERE / "jars.sha256").read_text(encoding="utf-8").splitlines()
    known = {name: digest for digest, name in (line.split() for line in lines)}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    if found != known:
        wrong = sorted(name for name in known.keys() | found.keys() if known.get(name) != found.get(name))
        raise NoBrokerError(
            f"{', '.join(wrong)} of {folder} are missing, unknown or not what jars.sha256 says; remove that folder"
        )
