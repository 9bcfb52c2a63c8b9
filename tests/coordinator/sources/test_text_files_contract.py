"""Text files keep the contract of all sources."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from coordinator.sources.files.text_files import TextFiles
from tests.coordinator.sources.contract import SourceContract, SourceWorld


class TextFilesWorld(SourceWorld):
    adopt: ClassVar[bool | str] = True
    lost: ClassVar[str] = r"input file '.*\.txt' has (changed|shrunk)|file '.*\.txt' has changed"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.parts = 0

    def add(self, count: int) -> None:
        for half in (count // 2, count - count // 2):
            lines = [f"line {len(self.rows) + number}" for number in range(half)]
            (self.folder / f"{self.parts:03}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            self.rows += [[line] for line in lines]
            self.parts += 1

    def spout(self) -> TextFiles:
        return TextFiles(str(self.folder / "*.txt"), 3)

    def other_spout(self) -> TextFiles:
        (self.folder / "other").mkdir(exist_ok=True)
        (self.folder / "other" / "a.txt").write_text("other\n", encoding="utf-8")
        return TextFiles(str(self.folder / "other" / "*.txt"), 3)

    def take_away(self) -> None:
        (self.folder / "000.txt").write_text("something else\n", encoding="utf-8")


class TestTextFiles(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> TextFilesWorld:
        return TextFilesWorld(tmp_path)
