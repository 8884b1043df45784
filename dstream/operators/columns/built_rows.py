"""`BuiltRows` and `ChangedRows`: lazy rows of new objects whose parts are columns.

They are what functions build of columns: displays of dicts and lists, objects of dataclasses and named tuples, copies
with other fields. A step that reads a part of such an item gets its column, and each row becomes an object of its own
where a step, a collector or a result needs it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from dstream.base.records import record
from dstream.expressions.resolution import is_same_constant_everywhere
from dstream.operators.columns.encoded import Encoded
from dstream.operators.columns.strings import Strings
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
    stacked,
)
from dstream.operators.rows.blocks import LazyRows
from dstream.values.fields import defaults_of_constructor, field_names, has_own_code, has_plain_fields

__all__ = [
    "BuiltRows",
    "ChangedRows",
    "PackedRows",
    "RowsWithParts",
    "built_rows",
    "changed_rows",
    "dicts_of_rows",
    "got_part",
    "has_part",
    "has_plain_operators",
    "makes_plain_objects",
    "packed_rows",
    "travels_as_column",
    "tuples_of_lists",
]

Access: TypeAlias = Literal["attribute", "key", "place"]


class RowsWithParts(LazyRows):
    """Rows that have a column for some parts of their items.

    Attributes:
        is_shared: several rows may have the same item, which therefore must not be made twice.
    """

    is_shared = False

    @property
    @abstractmethod
    def access(self) -> frozenset[Access]:
        """The ways in which items give their parts, as `spi.ArrowRows.reached_by` has them."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the parts, in order."""

    @property
    def item_class(self) -> type | None:
        """The class of all items; None if it is not known."""
        return None

    @property
    def has_other_parts(self) -> bool:
        """Return whether items may have parts that are not among `names`."""
        return True

    @staticmethod
    def stacked(rows: Sequence[Any]) -> RowsWithParts:
        """Return rows of this class one after another, which travelled in several parts.

        Raises:
            NotColumnar: they are of several layouts, or a part has several types; or rows of this class do not travel.
        """
        raise NotColumnar("rows that are not put together")

    @abstractmethod
    def part(self, name: str) -> Column:
        """Return the column of a part.

        Raises:
            NotColumnar: there is no such part, or its type is not columnar.
        """

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled as items: columns may belong to an open file, or have far more rows than these.
        return Objects, (list(chain.from_iterable(self.portions())),)


class BuiltRows(RowsWithParts):
    """Rows of new objects of one class.

    Args:
        kind: a dataclass or named tuple with plain fields, `dict` or `list`.
        members: the columns of the parts, by name; those of a list by place.
        size: the number of rows.
    """

    def __init__(self, kind: type, members: Mapping[str, Column], size: int) -> None:
        self.size = size
        self.kind = kind
        self.members = members

    @property
    def access(self) -> frozenset[Access]:
        return _ACCESS.get(self.kind) or _access_of(self.kind)

    @property
    def names(self) -> Sequence[str]:
        return tuple(self.members) if self.kind in _ACCESS else field_names(self.kind)

    @property
    def item_class(self) -> type:
        return self.kind

    @property
    def has_other_parts(self) -> bool:
        return False

    @staticmethod
    def stacked(rows: Sequence[BuiltRows]) -> BuiltRows:
        first = rows[0]
        if not all(first.has_layout_of(each) for each in rows):
            raise NotColumnar("rows of several layouts")
        members = {name: stacked([each.members[name] for each in rows]) for name in first.members}
        return BuiltRows(first.kind, members, sum(each.size for each in rows))

    def has_layout_of(self, other: BuiltRows) -> bool:
        """Return whether the items of other rows are of the same class, with the same parts in the same order."""
        return self.kind is other.kind and tuple(self.members) == tuple(other.members)

    def part(self, name: str) -> Column:
        if name in self.members:
            return self.members[name]
        defaults = {} if self.kind in _ACCESS else defaults_of_constructor(self.kind)
        if name not in defaults or not is_same_constant_everywhere(defaults[name]):
            raise NotColumnar(f"a part {name} that is not there, or no constant")
        return ConstantColumn(defaults[name], self.size)

    def at(self, places: Any) -> BuiltRows:
        members = {name: rows_at(column, places) for name, column in self.members.items()}
        return BuiltRows(self.kind, members, len(places))

    def portions(self) -> Iterator[Iterable[Any]]:
        if not self.members:
            yield (self.kind() for _ in range(self.size))
            return
        for start in range(0, self.size, _MOST):
            few = self.at(np.arange(start, min(start + _MOST, self.size))) if self.size > _MOST else self
            yield _made(self.kind, tuple(self.members), [items_of(each) for each in few.members.values()])


_MOST = 8192
_ACCESS: dict[type, frozenset[Access]] = {dict: frozenset({"key"}), list: frozenset({"place"})}


def _access_of(kind: type) -> frozenset[Access]:
    return frozenset({"attribute", "place"} if issubclass(kind, tuple) else {"attribute"})


def _made(kind: Any, names: tuple[str, ...], columns: list[list[Any]]) -> Iterable[Any]:
    if kind is list:
        return map(list, zip(*columns, strict=True))
    if kind is dict:
        return _maker_of_dicts(names)(zip(*columns, strict=True))
    fields = field_names(kind)[: len(names)]
    if set(names) == set(fields):
        return map(kind, *(columns[names.index(name)] for name in fields))
    return (kind(**values) for values in _maker_of_dicts(names)(zip(*columns, strict=True)))


@functools.lru_cache(maxsize=512)
def _maker_of_dicts(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], Iterator[dict[str, Any]]]:
    """Return a function that makes a dict of each row: a display takes a third of the time of `dict(zip(...))`."""
    variables = [f"a{place}" for place in range(len(names))]
    tree = ast.parse(f"lambda rows: ({{}} for ({', '.join(variables)},) in rows)", mode="eval")
    display = next(each for each in ast.walk(tree) if isinstance(each, ast.Dict))
    # The keys are constants of the tree: no text of a user is compiled.
    display.keys = [*map(ast.Constant, names)]
    display.values = [ast.Name(each, ast.Load()) for each in variables]
    made: Callable[..., Any] = eval(compile(ast.fix_missing_locations(tree), "<dicts>", "eval"), {"__name__": __name__})
    return made


@record
class PackedRows:
    """`BuiltRows` that travel as columns, which they own."""

    kind: type
    members: Mapping[str, Column]
    size: int

    def unpacked(self) -> BuiltRows:
        """Return the rows."""
        return BuiltRows(self.kind, self.members, self.size)


def packed_rows(rows: RowsWithParts) -> PackedRows | None:
    """Return rows so that they travel as columns; None if their items are more than numbers and strings by name.

    All rows have one class, and dicts of them the same keys: one item shows which.
    """
    names = tuple(rows.names)
    try:
        members = {name: rows.part(name) for name in names}
    except NotColumnar:
        return None
    if not rows.size or not all(map(travels_as_column, members.values())):
        return None
    first = next(chain.from_iterable(rows.at(np.arange(1)).portions()))
    there = tuple(first) if type(first) is dict else field_names(type(first)) if has_plain_fields(type(first)) else ()
    if there != names or hasattr(first, "__del__"):
        return None
    return PackedRows(type(first), members, rows.size)


def travels_as_column(part: Column) -> bool:
    """Return whether a part of rows travels as a column, whose values belong to one row each."""
    return isinstance(part, Ints | Floats | Bools | Strings | Encoded)


class ChangedRows(RowsWithParts):
    """Copies of rows with other values in some parts, or further ones.

    Args:
        of: the rows; their items are made anew for the copies.
        kind: as of `Changed`.
        members: the columns of the parts that differ, by name.
    """

    def __init__(self, of: RowsWithParts, kind: str, members: Mapping[str, Column]) -> None:
        self.size = of.size
        self._of, self._kind, self.members = of, kind, members

    @property
    def item_class(self) -> type | None:
        return self._of.item_class

    @property
    def access(self) -> frozenset[Access]:
        return self._of.access

    @property
    def names(self) -> Sequence[str]:
        return (*self._of.names, *(name for name in self.members if name not in self._of.names))

    @property
    def has_other_parts(self) -> bool:
        return self._of.has_other_parts

    def part(self, name: str) -> Column:
        return self.members[name] if name in self.members else self._of.part(name)

    def at(self, places: Any) -> ChangedRows:
        members = {name: rows_at(column, places) for name, column in self.members.items()}
        rows = self._of.at(places)
        assert isinstance(rows, RowsWithParts), "rows of rows with parts have them, too"
        return ChangedRows(rows, self._kind, members)

    def portions(self) -> Iterator[Iterable[Any]]:
        values = zip(*(items_of(each) for each in self.members.values()), strict=True)
        change = partial_change(self._kind, tuple(self.members))
        for portion in self._of.portions():
            # `map` asks for an item first: no row of values is lost between two portions.
            yield map(change, portion, values) if self.members else portion


def partial_change(kind: str, names: tuple[str, ...]) -> Callable[[Any, tuple[Any, ...]], Any]:
    """Return a function that gives an item other values; it is new, and nothing else has it."""

    def of_dict(item: dict[str, Any], values: tuple[Any, ...]) -> Any:
        item.update(zip(names, values, strict=True))
        return item

    def of_object(item: Any, values: tuple[Any, ...]) -> Any:
        for name, value in zip(names, values, strict=True):
            # As the constructor of a frozen dataclass does.
            object.__setattr__(item, name, value)
        return item

    def of_tuple(item: Any, values: tuple[Any, ...]) -> Any:
        return item._replace(**dict(zip(names, values, strict=True)))

    return {"dict": of_dict, "dataclass": of_object, "named tuple": of_tuple}[kind]


def makes_plain_objects(kind: type) -> bool:
    """Return whether nothing shows when an object of a class is made, or whether it is made once more."""
    return kind in _ACCESS or (has_plain_fields(kind) and not hasattr(kind, "__del__"))


def has_plain_operators(kind: type) -> bool:
    """Return whether no operator on objects of a class, nor a lookup in them, runs code of a user's."""
    return kind in _ACCESS or (makes_plain_objects(kind) and not has_own_code(kind))


def built_rows(kind: type, names: tuple[str, ...], columns: Sequence[Column], size: int) -> BuiltRows:
    """Return rows of new objects.

    Raises:
        NotColumnar: the class has code that shows whether an object is made, or when a part is read.
    """
    if names == ("**",):
        return _rows_of_members(kind, columns[0])
    if not makes_plain_objects(kind):
        raise NotColumnar("an object of a class with code of its own")
    named = map(str, range(len(columns))) if kind is list else names
    return BuiltRows(kind, dict(zip(named, columns, strict=True)), size)


def _rows_of_members(kind: type, rows: Column) -> BuiltRows:
    """Return rows of `kind(**row)`.

    Raises:
        NotColumnar: rows are no dicts with the names of fields alone, or a field has no value.
    """
    if not isinstance(rows, RowsWithParts) or rows.access != {"key"}:
        raise NotColumnar("rows that are no dictionaries")
    names, defaults = _names_there(rows), defaults_of_constructor(kind)
    fields = field_names(kind)
    if not set(names) <= set(fields) or not set(fields) - set(names) <= set(defaults):
        raise NotColumnar("other keys than the class has fields")
    return built_rows(kind, names, [rows.part(name) for name in names], rows.size)


def dicts_of_rows(rows: Column) -> BuiltRows:
    """Return rows of `dataclasses.asdict(row)`.

    Raises:
        NotColumnar: rows are no objects of a dataclass, or have values which that copies.
    """
    if not isinstance(rows, RowsWithParts) or rows.access != {"attribute"}:
        raise NotColumnar("rows that are no objects of a dataclass")
    members = {name: rows.part(name) for name in _names_there(rows)}
    plain = (Ints, Floats, Bools, Strings, Encoded, ConstantColumn)
    if not all(isinstance(each, plain) for each in members.values()):
        raise NotColumnar("values that are copied")
    return BuiltRows(dict, members, rows.size)


def _names_there(rows: RowsWithParts) -> tuple[str, ...]:
    """Return the names of all parts of an item, in its order.

    Raises:
        NotColumnar: they are not known, or one of them is in no column.
    """
    if not rows.size:
        raise NotColumnar("no rows")
    # All rows have one class, and dicts of them the same keys: one item shows which.
    first = next(chain.from_iterable(rows.at(np.arange(1)).portions()))
    is_plain = type(first) is dict or (dataclasses.is_dataclass(first) and has_plain_fields(type(first)))
    names: tuple[str, ...] = ()
    if is_plain:
        names = tuple(cast("dict[str, Any]", first)) if type(first) is dict else field_names(type(first))
    if not names or set(names) != set(rows.names):
        raise NotColumnar("parts that are not known")
    return names


def changed_rows(of: Column, kind: str, names: tuple[str, ...], columns: Sequence[Column]) -> ChangedRows:
    """Return copies of rows with other values.

    Raises:
        NotColumnar: the rows are none of dicts, or of a dataclass or named tuple with these fields.
    """
    access = _ACCESS_OF_COPIES[kind]
    if not isinstance(of, RowsWithParts) or of.is_shared or of.access != access:
        raise NotColumnar("a copy of something else than a record")
    if kind != "dict" and of.size:
        # One item is made to see the class, which is that of all rows.
        first = next(chain.from_iterable(of.at(np.arange(1)).portions()))
        is_plain = dataclasses.is_dataclass(first) if kind == "dataclass" else not has_own_code(type(first))
        if not is_plain or not has_plain_fields(type(first)) or hasattr(first, "__del__"):
            raise NotColumnar("a copy of an object of a class with code of its own")
        if not set(names) <= set(field_names(type(first))):
            raise NotColumnar("a field that is not there")
    return ChangedRows(of, kind, dict(zip(names, columns, strict=True)))


_ACCESS_OF_COPIES = {"dict": {"key"}, "dataclass": {"attribute"}, "named tuple": {"attribute", "place"}}


def got_part(rows: RowsWithParts, arguments: Sequence[Column]) -> Column:
    """Return `item.get(key)` or `item.get(key, default)` of dicts.

    Raises:
        NotColumnar: they are none, or the key is no string that is the same for all rows, or may be there in some.
    """
    key, *default = arguments
    if has_part(rows, key):
        return rows.part(key.value)  # type: ignore[union-attr]  # It is a constant.
    return default[0] if default else ConstantColumn(None, rows.size)


def has_part(rows: RowsWithParts, key: Column) -> bool:
    """Return whether dicts have a key: all of them, or none.

    Raises:
        NotColumnar: as for `got_part`.
    """
    if rows.access != {"key"} or not isinstance(key, ConstantColumn) or type(key.value) is not str:
        raise NotColumnar("a key of something else than a dict, or one that is not the same for all rows")
    if key.value not in rows.names and rows.has_other_parts:
        raise NotColumnar(f"a key {key.value} that only some rows may have")
    return key.value in rows.names


def tuples_of_lists(column: Column) -> Column:
    """Return tuples with the members of lists of one length; other columns as they are."""
    if isinstance(column, BuiltRows) and column.kind is list:
        return Tuples(tuple(column.members.values()), column.size)
    return column
