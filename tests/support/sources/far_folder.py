"""A folder as a store shows it that only pyarrow can list: no links, no inodes, names to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.fs


class FarFolder(pyarrow.fs.FileSystemHandler):
    """A local folder under another type.

    Args:
        folder: what the store holds.
        type_name: of the store; one of objects tells no folders when it lists everything below a prefix.
    """

    def __init__(self, folder: Path, type_name: str) -> None:
        self._type_name = type_name
        self._inner = pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem())

    def filesystem(self) -> Any:
        """Returns it as a source takes it."""
        return pyarrow.fs.PyFileSystem(self)

    def get_type_name(self) -> str:
        return self._type_name

    def get_file_info(self, paths: list[str]) -> Any:
        return self._inner.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        found = self._inner.get_file_info(selector)
        if self._type_name == "flat" and selector.recursive:
            return [info for info in found if info.type == pyarrow.fs.FileType.File]
        return found

    def open_input_file(self, path: str) -> Any:
        return pyarrow.PythonFile(self._inner.open_input_file(path), mode="r")


for _name in pyarrow.fs.FileSystemHandler.__abstractmethods__:
    if _name not in vars(FarFolder):
        setattr(FarFolder, _name, lambda self, *given, **named: None)
FarFolder.__abstractmethods__ = frozenset()
