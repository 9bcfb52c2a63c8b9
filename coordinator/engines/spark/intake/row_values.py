"""What becomes of a DataFrame's values in a tuple: plain Python, the same on every executor.

Spark hands a timestamp to Python as a datetime without a zone, in the local time of the worker that happens to
run. Here it gets its zone, UTC, so that it means the same everywhere.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, TimestampType

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

Shape = str | tuple[Any, ...] | None
"""How to convert a value: as plain data, which is shipped; None leaves it as it is."""
Convert = Callable[[Any], Any]
_TIMESTAMP, _BINARY, _ARRAY, _MAP, _STRUCT = "timestamp", "binary", "array", "map", "struct"


def shape_of(data_type: DataType) -> Shape:
    """Returns how values of a type are converted (driver)."""
    match data_type:
        case TimestampType():
            return _TIMESTAMP
        case BinaryType():
            return _BINARY
        case ArrayType(elementType=element):
            return (_ARRAY, shape_of(element))
        case MapType(keyType=key, valueType=value):
            return (_MAP, shape_of(key), shape_of(value))
        case StructType(fields=fields):
            return (_STRUCT, *((field.name, shape_of(field.dataType)) for field in fields))
        case _:
            return None


def row_converter(shapes: Sequence[Shape]) -> Convert:
    """Makes the function that turns a row into a list of plain values (executor, once a task)."""
    converters = [(index, _converter(shape)) for index, shape in enumerate(shapes) if shape is not None]
    if not converters:
        return list

    def convert(row: Sequence[Any]) -> list[Any]:
        values = list(row)
        for index, converter in converters:
            values[index] = converter(values[index])
        return values

    return convert


def _converter(shape: Shape) -> Convert:
    match shape:
        case None:
            return lambda value: value
        case "timestamp":
            return _but_none(lambda value: value.astimezone(dt.UTC))
        case "binary":
            return _but_none(bytes)
        case ("array", element):
            item = _converter(element)
            return _but_none(lambda value: [item(each) for each in value])
        case ("map", key, value):
            of_key, of_value = _converter(key), _converter(value)
            return _but_none(lambda found: {of_key(k): of_value(v) for k, v in found.items()})
        case ("struct", *fields):
            named = [(name, _converter(inner)) for name, inner in fields]
            return _but_none(lambda row: {name: of(each) for (name, of), each in zip(named, row, strict=True)})
    raise AssertionError(f"no such shape: {shape!r}")


def _but_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)
