"""Runs the tests with the marker every_spark on each PySpark that txbatch supports, and each Python that is there.

    make matrix
    make matrix ARGS='--only 3.5 4.0 python3.13'

Folders of pinned versions are fetched into .programs/spark-matrix: 2.5 GB for the Sparks, 1.2 GB for each Python. The
table says for each what passed, and the processor time of 200 transactions of the word count; see
`benchmarks/spark_versions.py`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".programs" / "spark-matrix"
PY4J = {
    "0.10.9.7": "85defdfd2b2376eb3abf5ca6474b51ab7e0de341c75a02f46dc9b5976f5a5c1b",
    "0.10.9.9": "c7c26e4158defb37b0bb124933163641a2ff6e3a3913f7811b0ddbe07ed61533",
}
SPARKS = {
    "3.5.9": ("ea27adc39ddac9413b8951e45aa748cbed6c785971b81386efc41938f6243d93", "0.10.9.7"),
    "4.0.5": ("a0d44b0e7faf0458ad83b7aa664e7ed8b96beed8a55d66ce3b0dfac2309dfca6", "0.10.9.9"),
    "4.1.4": ("bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73", "0.10.9.9"),
    "4.2.1": ("d79b7c8ee41e66a9202fe6f600ca90b931ca571ae9dbdf31c58d2672e5102da0", "0.10.9.9"),
    "4.3.0": ("e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6", "0.10.9.9"),
}
"""Version of PySpark -> hash of its archive, version of its py4j: the newest of each."""
PYTHONS = ("python3.12", "python3.13", "python3.14")
SPEAKING = "import pyspark, pytest, sys; print(pyspark.__version__); sys.exit(pytest.main(sys.argv[1:]))"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--progress-bar", "off", "--require-hashes")
QUIET = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Up to 4.1 PySpark leaves sockets of its own open."""


@dataclass(frozen=True, slots=True)
class Site:
    """A PySpark and a Python to run on.

    Attributes:
        folder: what stands first on the path; None for the interpreter's own PySpark.
    """

    name: str
    python: str
    folder: Path | None = None

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs Python with arguments in the checkout."""
        path = [str(folder) for folder in (self.folder, ROOT) if folder is not None]
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        environment |= {"PYTHONPATH": os.pathsep.join(path), "PYSPARK_PYTHON": self.python, "CI": "true"}
        return subprocess.run(
            [self.python, *command], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
        )

    def short_tests(self) -> subprocess.CompletedProcess[str]:
        """Runs the tests with the marker; the first line of the output is the version of PySpark."""
        return self.run("-c", SPEAKING, "-q", "-m", "every_spark", "-p", "no:cacheprovider", *QUIET, "tests/spark")


def sparks(wanted: Sequence[str]) -> Iterator[Site]:
    """Yields a site for each version of Spark, fetched if it is not there."""
    for version, (digest, py4j) in SPARKS.items():
        if wanted and not version.startswith(tuple(wanted)):
            continue
        folder = FOLDER / version
        if not (folder / ".ready").exists():
            print(f"fetching PySpark {version}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            locked = f"pyspark=={version} --hash=sha256:{digest}\npy4j=={py4j} --hash=sha256:{PY4J[py4j]}\n"
            with tempfile.NamedTemporaryFile("w", suffix=".lock") as lock:
                lock.write(locked)
                lock.flush()
                options = ("--no-deps", "--no-build-isolation", "--target", str(folder), "-r", lock.name)
                _install(sys.executable, *options)
            (folder / ".ready").touch()
        yield Site(f"PySpark {version}", sys.executable, folder)


def pythons(wanted: Sequence[str]) -> Iterator[Site]:
    """Yields a site for each other Python on the path, with the locked packages; says which ones are not there."""
    for name in wanted or PYTHONS:
        if name not in PYTHONS:
            continue
        folder = FOLDER / name
        found = subprocess.run([name, "-c", ""], check=False, capture_output=True) if shutil.which(name) else None
        if found is None or found.returncode != 0:
            print(f"{name} is not on PATH, so nothing was run on it", flush=True)
            continue
        program = str(folder / "bin" / "python")
        if not (folder / ".ready").exists():
            print(f"making an environment with {name}", flush=True)
            subprocess.run([name, "-m", "venv", "--clear", str(folder)], check=True)
            _install(program, "-r", "requirements-build.lock")
            _install(program, "--no-build-isolation", "-r", "requirements.lock")
            (folder / ".ready").touch()
        yield Site(f"{name}, locked packages", program)


def _install(python: str, *options: str) -> None:
    subprocess.run([python, *PIP, *options], cwd=ROOT, env={**os.environ, "PIP_USE_PEP517": "1"}, check=True)


def main() -> int:
    """Runs everything and prints the table; returns 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="make matrix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="VERSION", help="these, and nothing else")
    wanted = parser.parse_args().only
    rows, has_failed = [], False
    for site in [*sparks(wanted), *pythons(wanted)]:
        tested, measured = site.short_tests(), site.run("-m", "benchmarks.spark_versions")
        failed = tested.returncode or measured.returncode
        has_failed |= bool(failed)
        if failed:
            print(tested.stdout, tested.stderr, measured.stdout, measured.stderr)
        summary = tested.stdout.splitlines()[-1] if tested.stdout else "no output"
        seconds = measured.stdout.splitlines()[-1] if not measured.returncode else "failed"
        rows.append(f"| {site.name} | {summary} | {seconds} |")
        print(rows[-1], flush=True)
    print("\n| On | Short tests | Processor time of 200 transactions |\n|---|---|---|", *rows, sep="\n")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
