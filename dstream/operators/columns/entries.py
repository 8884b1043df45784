"""`Entries`: lazy rows of keys and values in columns, or of a join; the check that no item has an object twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.operators.columns.built_rows import Access, BuiltRows, ChangedRows, RowsWithParts
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.strings import StringLists, Strings, offsets_and_bytes
from dstream.operators.columns.values import (
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    Objects,
    Tuples,
    items_of,
    rows_at,
    size_of_column,
    stacked,
    tight,
)
from dstream.operators.rows.blocks import LazyRows
from dstream.values import Entry
from dstream.values.entries import as_entry

__all__ = [
    "Entries",
    "JoinedRows",
    "PassingRows",
    "RowValues",
    "SharedRows",
    "are_shared",
    "are_unmade",
    "check_identities",
    "check_unshared",
    "class_of",
    "entries_of",
    "with_parts",
]


class Entries(LazyRows):
    """Entries, each made of its parts when it is needed.

    Args:
        members: the column of the keys, and that of the values.
    """

    def __init__(self, members: tuple[Column, Column]) -> None:
        self._members = members
        self.size = size_of_column(members[0])

    @property
    def members(self) -> tuple[Column, Column]:
        """The column of the keys, and that of the values."""
        return self._members

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


class RowValues:
    """The values of some rows: columns until an item is needed, which is then made once for all of its pairs.

    Args:
        parts: lists or columns, one after another.
        behind: further items, which are no rows.
    """

    def __init__(self, parts: Sequence[list[Any] | Column], behind: Sequence[Any] = ()) -> None:
        self._parts = parts
        self._behind = behind
        self._items: list[Any] | None = None
        self._column: Column | None = None
        self.is_columnar = bool(parts) and all(map(_is_plain, parts))
        self.has_records = any(isinstance(each, RowsWithParts) for each in parts)

    def column(self) -> Column:
        """Return the values as a column.

        Raises:
            NotColumnar: items were needed, or their identity matters, or they are of several types.
        """
        if not self.is_columnar:
            raise NotColumnar("values of a join that are objects")
        if self._column is None:
            self._column = _stacked(self._parts)  # type: ignore[arg-type]
            # Nothing is in memory twice.
            self._parts = [self._column]
        return self._column

    def items(self) -> list[Any]:
        """Return the items."""
        if self._items is None:
            lists = (each if isinstance(each, list) else items_of(each) for each in self._parts)
            self._items = [*chain.from_iterable(lists), *self._behind]
            # Nothing is in memory twice, and no item is made a second time.
            self._parts, self._column, self.is_columnar = (), None, False
        return self._items


def _stacked(parts: Sequence[Column]) -> Column:
    kind, *others = set(map(type, parts))
    is_of_rows = len(parts) > 1 and not others and issubclass(kind, RowsWithParts)
    return kind.stacked(parts) if is_of_rows else stacked(parts)  # type: ignore[attr-defined]


def _is_plain(values: list[Any] | Column) -> bool:
    """Return whether values are numbers, strings, tuples of these, or rows whose parts may be such columns.

    The former may be made once for each pair. Of rows `SharedRows` give an item that is made once for all of its pairs.
    """
    return not values.is_shared if isinstance(values, RowsWithParts) else _is_immutable(values)


def _is_immutable(values: list[Any] | Column) -> bool:
    """Return whether values are numbers, strings or tuples of these: a row in a tuple would be made for each pair."""
    if isinstance(values, Tuples):
        return all(map(_is_immutable, values.members))
    return isinstance(values, Ints | Floats | Bools | Strings | Encoded)


class SharedRows(RowsWithParts):
    """Rows of one side of a join, each of which may be in several pairs.

    Their parts are columns as long as no item is made: a function of Python may change an item, which others share.

    Args:
        values: those of the side.
        rows: which of them these are.
    """

    is_shared = True

    def __init__(self, values: RowValues, rows: NDArray[np.int64]) -> None:
        self.size = len(rows)
        self._values, self._rows = values, rows

    @property
    def _columns(self) -> RowsWithParts:
        column = self._values.column()
        if not isinstance(column, RowsWithParts):
            raise NotColumnar("a part of something else than a record")
        return column

    @property
    def access(self) -> frozenset[Access]:
        return self._columns.access

    @property
    def names(self) -> Sequence[str]:
        return self._columns.names

    @property
    def item_class(self) -> type | None:
        return self._columns.item_class

    @property
    def has_other_parts(self) -> bool:
        return self._columns.has_other_parts

    def part(self, name: str) -> Column:
        return _repeated(self._columns.part(name), self._rows)

    def at(self, places: Any) -> SharedRows:
        return SharedRows(self._values, self._rows.take(places))

    def portions(self) -> Iterator[Iterable[Any]]:
        yield map(self._values.items().__getitem__, self._rows.tolist())


def class_of(column: Column) -> type:
    """Return the class of all items; `object` for builtin ones.

    Raises:
        NotColumnar: it is not known.
    """
    if isinstance(column, ConstantColumn):
        return type(column.value)
    if not isinstance(column, LazyRows | Objects):
        return object
    found = Entry if isinstance(column, Entries) else column.item_class if isinstance(column, RowsWithParts) else None
    if found is None:
        raise NotColumnar("objects whose class is not known")
    return found


def check_unshared(column: Column) -> None:
    """Check for rows of a join in results, whose items a later step of Python may change while others share them.

    Raises:
        NotColumnar: they have some.
    """
    if are_shared(column):
        raise NotColumnar("rows of a join that become items")
    for each in _members_of(column):
        check_unshared(each)


def are_shared(block: object) -> bool:
    """Return whether several rows may have the same item, which a step of Python may change."""
    return isinstance(block, SharedRows) or (isinstance(block, JoinedRows) and block.has_records)


def _members_of(column: Column) -> Iterable[Column]:
    if isinstance(column, BuiltRows | ChangedRows):
        return column.members.values()
    # A subclass has its items from elsewhere.
    return column.members if isinstance(column, Tuples) or type(column) is Entries else ()


class PassingRows:
    """Keys and values of rows that pass by."""

    def __init__(self, keys: NDArray[np.int64] | Strings, values: list[Any] | Column) -> None:
        self._keys = keys
        self._texts: list[str] | None = None
        self.values = RowValues([values])

    def keys_at(self, rows: NDArray[np.int64]) -> Iterable[Any]:
        """Return the keys of some rows, of which one may be there many times: each text is made once."""
        if not isinstance(self._keys, Strings):
            ints: list[int] = self._keys.take(rows).tolist()
            return ints
        if self._texts is None:
            self._texts = self._keys.tolist()
        return map(self._texts.__getitem__, rows.tolist())

    def key_column(self, rows: NDArray[np.int64]) -> Column:
        """Return the keys as a column.

        Raises:
            NotColumnar: they have too many bytes.
        """
        if isinstance(self._keys, Strings):
            return _repeated(self._keys, rows)
        return tight(Ints(self._keys.take(rows), 0, 0))


def _repeated(column: Column, rows: NDArray[np.int64]) -> Column:
    """Return some rows, each of which may be there many times.

    Raises:
        NotColumnar: their strings have too many bytes.
    """
    if isinstance(column, RowsWithParts):
        raise NotColumnar("records within records")
    if _bytes_at(column, rows) > _MOST_BYTES:
        raise NotColumnar("strings of many bytes")
    return rows_at(column, rows)


_MOST_BYTES = 2**25
"""The most bytes of strings that are repeated for the pairs of a block; an object is shared by all of them."""


def _bytes_at(column: Column, rows: NDArray[np.int64]) -> int:
    if isinstance(column, Tuples):
        return sum(_bytes_at(each, rows) for each in column.members)
    return int(np.diff(offsets_and_bytes(column.values)[0])[rows].sum()) if isinstance(column, Strings) else 0


def _in_pairs(column: Column, values: RowValues, rows: NDArray[np.int64]) -> Column:
    return SharedRows(values, rows) if isinstance(column, RowsWithParts) else _repeated(column, rows)


class JoinedRows(Entries):
    """Pairs of a row that passes by and one that is held, which become entries when they are needed.

    Args:
        passing: the rows that pass by.
        rows: which of them each pair has.
        held: values of rows that are held.
        held_rows: which of them each pair has; -1 for none.
        holds_left: whether the one that is held is first in a pair.
    """

    def __init__(
        self,
        passing: PassingRows,
        rows: NDArray[np.int64],
        held: RowValues,
        held_rows: NDArray[np.int64],
        holds_left: bool,
    ) -> None:
        self.size = len(rows)
        self._passing, self._rows = passing, rows
        self._rows_of_block = rows
        self._held, self._held_rows = held, held_rows
        self._holds_left = holds_left
        self._found: tuple[Column, Column] | None = None
        are_columns = passing.values.is_columnar and held.is_columnar
        self.is_evaluated = are_columns and int(held_rows.min(initial=0)) >= 0

    @property
    def has_records(self) -> bool:
        """Return whether an item of a side may be a record, which several pairs share."""
        return self._passing.values.has_records or self._held.has_records

    @property
    def members(self) -> tuple[Column, Column]:
        """The column of the keys, and that of the pairs of values.

        Raises:
            NotColumnar: a side has no column of values, or too long strings, or a NaN that may be there twice.
        """
        if self._found is None:
            passing, held = self._passing.values.column(), self._held.column()
            # A row that is held may have pairs in other blocks, one that passes by only in its own.
            if len(_nan_rows(held, self._held_rows)) or _has_equal(_nan_rows(passing, self._rows_of_block)):
                raise NotColumnar("a NaN that may be in several pairs")
            own = _in_pairs(passing, self._passing.values, self._rows)
            other = _in_pairs(held, self._held, self._held_rows)
            pair = (other, own) if self._holds_left else (own, other)
            self._found = self._passing.key_column(self._rows), Tuples(pair, self.size)
        return self._found

    def at(self, places: Any) -> JoinedRows:
        rows, held_rows = self._rows.take(places), self._held_rows.take(places)
        found = JoinedRows(self._passing, rows, self._held, held_rows, self._holds_left)
        found._rows_of_block = self._rows_of_block
        return found

    def portions(self) -> Iterator[Iterable[Any]]:
        others = map(self._held.items().__getitem__, self._held_rows.tolist())
        own = map(self._passing.values.items().__getitem__, self._rows.tolist())
        pairs = zip(others, own, strict=True) if self._holds_left else zip(own, others, strict=True)
        yield map(as_entry, zip(self._passing.keys_at(self._rows), pairs, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled as items, since the other side may have far more rows than these.
        return Objects, (items_of(self),)


def _nan_rows(values: Column, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows whose values have a NaN: one object, which tuples of several pairs that are equal have."""
    are_nan = np.zeros(len(rows), np.bool_)
    for each in _parts((values,)):
        if isinstance(each, Floats):
            are_nan |= np.isnan(each.values.take(rows))
    return rows[are_nan]


def _has_equal(rows: NDArray[np.int64]) -> bool:
    return len(np.unique(rows)) < len(rows)


def are_unmade(rows: Column) -> bool:
    """Return whether rows, or parts of them, are items that are neither made nor in columns."""
    # A subclass has its items from elsewhere.
    if isinstance(rows, Tuples) or type(rows) is Entries:
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
    """Return items that are tuples of `size` members, or entries of two.

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
        raise NotColumnar("items that may be no tuples of this size")
    return items


def check_identities(members: Iterable[Column]) -> None:
    """Check that no object is twice in tuples with these members, where that differs from two equal objects.

    What is added to a list is in it wherever it is stored; so it is with objects of a class. A NaN equals no other one,
    and yet `in`, `count` and the comparison of tuples find the very same.

    Raises:
        NotColumnar: there may be such an object.
    """
    parts = list(_parts(members))
    # One column of lists in two places puts the same list into a tuple twice: a change of one changes both.
    lists = [id(each) for each in parts if isinstance(each, StringLists)]
    objects = sum(isinstance(each, LazyRows) for each in parts)
    # An object that was built of columns may contain a list that is beside it, too.
    if len(set(lists)) < len(lists) or objects > 1 or (objects and lists):
        raise NotColumnar("a list or an object that may be in a tuple twice")
    numbers = [each for each in parts if isinstance(each, Floats | Objects)]
    if len(numbers) + objects < 2:
        return
    # Rows that are not made may be any object, also a NaN.
    seen: Any = objects > 0
    for each in numbers:
        are_nan = _are_nan(each)
        if np.any(are_nan & seen):
            raise NotColumnar("a NaN that may be in a tuple twice")
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
