"""Converts the values of a DataFrame for tuples: to plain Python, the same on every executor.

Spark passes a timestamp to Python as a datetime without a zone, in the local time of whichever worker runs, in which
the first and the last hours of Python's years cannot be expressed. Here Spark counts microseconds instead, from which a
datetime in UTC is made.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from state.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

Shape = str | tuple[Any, ...] | None
"""How to convert a value, as plain data that can be shipped; None leaves the value as it is."""
Convert = Callable[[Any], Any]
_TIMESTAMP, _BINARY, _ARRAY, _MAP, _STRUCT = "timestamp", "binary", "array", "map", "struct"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def shape_of(column: str, data_type: DataType) -> Shape:
    """Returns the shape that converts the values of a type (driver).

    Raises:
        SourceError: a tuple cannot carry such values.
    """
    match data_type:
        case TimestampType():
            return _TIMESTAMP
        case BinaryType():
            return _BINARY
        case ArrayType(elementType=element):
            return (_ARRAY, shape_of(column, element))
        case MapType(keyType=key, valueType=value) if not isinstance(key, ArrayType | StructType):  # no keys of a dict
            return (_MAP, shape_of(column, key), shape_of(column, value))
        case StructType(fields=fields, names=names) if len(set(names)) == len(names):
            return (_STRUCT, *((field.name, shape_of(column, field.dataType)) for field in fields))
        case StringType() | NumericType() | BooleanType() | DateType() | TimestampNTZType() | NullType():
            return None
    raise SourceError(
        f"column {column!r} of the DataFrame holds {data_type.simpleString()}, which a tuple cannot carry: cast it to "
        "text or a number, give each field of a struct its own name, or leave it out of columns"
    )


def counted_from_1970(column: Column, data_type: DataType) -> Column:
    """Returns a column with its timestamps, nested ones too, as microseconds since 1970 (driver)."""
    if "timestamp" not in data_type.simpleString():
        return column
    match data_type:
        case TimestampType():
            return sql.unix_micros(column)
        case ArrayType(elementType=element):
            return sql.transform(column, lambda each: counted_from_1970(each, element))
        case MapType(keyType=key, valueType=value):
            keyed = sql.transform_keys(column, lambda each, _: counted_from_1970(each, key))
            return sql.transform_values(keyed, lambda _, each: counted_from_1970(each, value))
        case StructType(fields=fields):
            inner = [counted_from_1970(column.getField(f.name), f.dataType).alias(f.name) for f in fields]
            return sql.when(column.isNotNull(), sql.struct(*inner))
    return column


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
            return _but_none(lambda value: _EPOCH + dt.timedelta(microseconds=value))
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
