"""Columns on their way: bytes that become a list of items again where they are unpickled, without NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.columns.unmade import Unmade
from dstream.pickling import dumps

if TYPE_CHECKING:
    from dstream.engine.kernels.columns.column_values import Column

__all__ = ["packed_columns"]


class _Packed:
    """Pickles a column as what makes a list of its items."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def __reduce__(self) -> tuple[Any, ...]:
        return _made(self._column)


def packed_columns(column: Column) -> Iterator[tuple[int, bytes]]:
    """Give (number of items, pickled list) of the rows of a column, some at a time."""
    from dstream.engine.kernels.columns.column_values import parts_of

    for part, size in parts_of(column, _ROWS):
        yield size, dumps(_Packed(part))


_ROWS = 32_768


def _made(column: Column) -> tuple[Any, ...]:
    from dstream.engine.kernels.columns.column_texts import Lists, Texts
    from dstream.engine.kernels.columns.column_values import Bools, Floats, Ints, Objects, Same, Tuples, items_of

    if isinstance(column, Unmade):
        return list, (items_of(column),)
    if isinstance(column, Ints):
        return _numbers, ("q", column.values.tobytes())
    if isinstance(column, Floats):
        return _numbers, ("d", column.values.tobytes())
    if isinstance(column, Bools):
        return _numbers, ("?", column.values.tobytes())
    if isinstance(column, Same):
        return _same, (column.value, column.size)
    if isinstance(column, Objects):
        return list, (column.values,)
    if isinstance(column, Texts):
        separated = column.separated()
        return (list, (column.tolist(),)) if separated is None else (_texts, separated)
    if isinstance(column, Lists):
        return _lists, (_Packed(column.members), column.ends().tolist())
    assert isinstance(column, Tuples), "there are no other columns"
    if column.whole is not None:
        return _windows, (_Packed(column.whole), len(column.members))
    return _tuples, (column.size, *map(_Packed, column.members))


def _numbers(code: Any, data: bytes) -> list[Any]:
    found: list[Any] = memoryview(data).cast(code).tolist()
    return found


def _texts(data: bytes, separator: str) -> list[str]:
    found = data.decode().split(separator)
    found.pop()
    return found


def _lists(members: list[str], ends: list[int]) -> list[list[str]]:
    return [members[start:end] for start, end in pairwise([0, *ends])]


def _same(value: Any, size: int) -> list[Any]:
    return [value] * size


def _windows(values: list[Any], size: int) -> list[Any]:
    from more_itertools import sliding_window

    return list(sliding_window(values, size))


def _tuples(size: int, *members: list[Any]) -> list[Any]:
    return list(zip(*members, strict=True)) if members else [()] * size
