"""`Entries`: lazy rows of keys and values in columns; the check that no item has an object twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.operators.columns.strings import StringLists
from dstream.operators.columns.values import (
    Column,
    ConstantColumn,
    Floats,
    NotColumnar,
    Objects,
    Tuples,
    items_of,
    rows_at,
    size_of_column,
)
from dstream.operators.rows.blocks import LazyRows
from dstream.values import Entry
from dstream.values.entries import as_entry

__all__ = ["Entries", "are_unmade", "check_identities", "entries_of", "with_parts"]


class Entries(LazyRows):
    """Entries, each made of its parts when somebody needs it.

    Args:
        members: the column of the keys, and that of the values.
    """

    def __init__(self, members: tuple[Column, Column]) -> None:
        self.members = members
        self.size = size_of_column(members[0])

    def at(self, places: Any) -> Entries:
        key, value = self.members
        return Entries((rows_at(key, places), rows_at(value, places)))

    def portions(self) -> Iterator[Iterable[Any]]:
        key, value = map(items_of, self.members)
        yield map(as_entry, zip(key, value, strict=True))

    def part(self, name: str) -> Column:
        """Return the column of a part by its name.

        Raises:
            NotColumnar: entries have no such part.
        """
        if name not in Entry._fields:
            raise NotColumnar(f"a part {name} that entries do not have")
        return self.members[Entry._fields.index(name)]


def are_unmade(rows: Column) -> bool:
    """Say whether rows, or parts of them, are items that are not made and stand in no columns either."""
    if isinstance(rows, Tuples | Entries):
        return any(map(are_unmade, rows.members))
    return isinstance(rows, LazyRows)


def entries_of(pairs: Column) -> Column:
    """Return entries with the members of pairs.

    Raises:
        NotColumnar: they are no pairs.
    """
    if isinstance(pairs, ConstantColumn) and type(pairs.value) is tuple and len(pairs.value) == 2:
        return ConstantColumn(as_entry(pairs.value), pairs.size)
    if not isinstance(pairs, Tuples) or len(pairs.members) != 2:
        raise NotColumnar("an entry of something else than a pair")
    key, value = pairs.members
    return Entries((key, value))


def with_parts(items: Column, size: int) -> Column:
    """Return items that are tuples of so many members, or entries of two.

    Raises:
        NotColumnar: it is not known that all of them are.
    """
    if isinstance(items, ConstantColumn):
        is_entry = type(items.value) is Entry and size == 2
        is_known = is_entry or (type(items.value) is tuple and len(items.value) == size)
    else:
        is_known = (isinstance(items, Tuples) and len(items.members) == size) or (
            isinstance(items, Entries) and size == 2
        )
    if not is_known:
        raise NotColumnar("items that may be no tuples of so many members")
    return items


def check_identities(members: Iterable[Column]) -> None:
    """Look whether an object may stand twice in tuples with these members, where that can be told from two equal ones.

    What is added to a list is in it wherever it stands; so it is with objects of a class. A NaN equals no other one,
    and yet `in`, `count` and the comparison of tuples find the very same.

    Raises:
        NotColumnar: there may be such an object.
    """
    parts = list(_parts(members))
    # One column of lists in two places puts the same list into a tuple twice: a change of one changes both.
    lists = [id(each) for each in parts if isinstance(each, StringLists)]
    objects = sum(isinstance(each, LazyRows) for each in parts)
    if len(set(lists)) < len(lists) or objects > 1:
        raise NotColumnar("a list or an object that may stand in a tuple twice")
    numbers = [each for each in parts if isinstance(each, Floats | Objects)]
    if len(numbers) + objects < 2:
        return
    # Rows that are not made may be any object, also a NaN.
    seen: Any = objects > 0
    for each in numbers:
        are_nan = _are_nan(each)
        if np.any(are_nan & seen):
            raise NotColumnar("a NaN that may stand in a tuple twice")
        seen = are_nan | seen


def _parts(members: Iterable[Column]) -> Iterator[Column]:
    for each in members:
        if isinstance(each, Tuples | Entries):
            yield from _parts(each.members)
        else:
            yield each


def _are_nan(column: Floats | Objects) -> NDArray[np.bool_]:
    if isinstance(column, Floats):
        return np.isnan(column.values)
    return np.fromiter((type(each) is float and each != each for each in column.values), np.bool_)
