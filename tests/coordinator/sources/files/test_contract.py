"""Every source of files keeps the contract of all sources."""

from __future__ import annotations

import gzip
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


class TestTextFiles(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return TextWorld(tmp_path)


class TestJsonLines(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return JsonWorld(tmp_path)


class TestJsonLinesInGzip(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return JsonWorld(tmp_path, gzip.compress)


class TestTextFilesInZstd(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return TextWorld(tmp_path, zstd)


class TestCsvFiles(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return CsvWorld(tmp_path)


class TestParquetFiles(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return ParquetWorld(tmp_path)


class TestFilesOfAnotherFileSystem(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return FarJsonWorld(tmp_path)


class TestFilesByAddress(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return AddressedJsonWorld(tmp_path)


class TestGrowingFolder(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        return GrowingJsonWorld(tmp_path)
