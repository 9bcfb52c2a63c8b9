"""Addresses of folders that are not paths."""

from __future__ import annotations


class Address(str):
    """An address that is joined as a path is."""

    def __truediv__(self, name: str) -> str:
        return f"{self}/{name}"
