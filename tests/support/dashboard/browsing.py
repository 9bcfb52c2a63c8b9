"""A headless Chromium and the accessibility checker axe; what is missing skips the test and says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = "axe-core@4.10.3"
STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser for some tests."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium is on PATH; install Debian's package chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install 'txbatch[browser]'")
    with api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def axe_source(folder: Path) -> str:
    """The source of the checker, fetched from npm into a temporary folder."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing, which fetches the accessibility checker")
    quiet = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund")
    command = ["npm", "install", *quiet, "--prefix", str(folder), AXE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip()[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def complaints(page: Any, axe: str) -> list[str]:
    """What the checker finds wrong with a page."""
    page.evaluate(axe)
    found = page.evaluate(f"axe.run(document, {{runOnly: {json.dumps(STANDARDS)}}})")
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


class Tab:
    """A page in the browser, which remembers everything that went wrong in it."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.wrong: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def close(self) -> None:
        """Closes the page."""
        self.context.close()


@contextmanager
def tab(browser: Any, *, width: int = 1280, height: int = 800, scheme: str = "light", **options: Any) -> Iterator[Tab]:
    """A page of some size, in one colour scheme."""
    opened = Tab(browser, viewport={"width": width, "height": height}, color_scheme=scheme, **options)
    try:
        yield opened
    finally:
        opened.close()
