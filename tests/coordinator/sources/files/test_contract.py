"""Every source of files keeps the contract of all sources."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.coordinator.sources.contract import SourceContract, SourceWorld
from tests.support.sources.file_worlds import (
    AddressedJsonWorld,
    CsvWorld,
    FarJsonWorld,
    GrowingJsonWorld,
    JsonWorld,
    ParquetWorld,
    TextWorld,
    zstd,
)

WORLDS: dict[str, Callable[[Path], SourceWorld]] = {
    "text": TextWorld,
    "json": JsonWorld,
    "json in gzip": lambda folder: JsonWorld(folder, gzip.compress),
    "text in zstd": lambda folder: TextWorld(folder, zstd),
    "csv": CsvWorld,
    "parquet": ParquetWorld,
    "another file system": FarJsonWorld,
    "by address": AddressedJsonWorld,
    "growing folder": GrowingJsonWorld,
}


class TestFiles(SourceContract):
    @pytest.fixture(params=WORLDS)
    def world(self, tmp_path: Path, request: pytest.FixtureRequest) -> SourceWorld:
        return WORLDS[request.param](tmp_path)
