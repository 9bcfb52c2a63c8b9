"""A Spark home and interpreters of a test's own, made of what is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark


def spark_home_in(folder: Path) -> Path:
    """A Spark home like that of the installed pyspark: a local cluster writes its work folder into it."""
    home = folder / "spark-home"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    return home


def python_in(folder: Path, python_path: str, options: str = "") -> Path:
    """An interpreter for executors; the shell makes its path of `python_path`."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{python_path}" exec {sys.executable} {options} "$@"\n')
    program.chmod(0o755)
    return program


def python_with(folder: Path, module: str, text: str) -> Path:
    """An interpreter that finds one more module, of this text, first."""
    (folder / "first").mkdir()
    (folder / "first" / f"{module}.py").write_text(text, encoding="utf-8")
    return python_in(folder, f"{folder}/first:$PYTHONPATH")
