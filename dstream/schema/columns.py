"""Items as columns of a file: names, types by annotation or by value, and values column by column.

Columns are the fields of dataclasses and named tuples, the keys of dicts, or what `columns=` of `to_files` names. No
field of an item is left out, and none is made up unless `columns=` names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from dstream.arguments import checked_names
from dstream.base.showing import shown
from dstream.failures.attribution import failed_on
from dstream.schema.type_inference import Layout, OpenType, types_of_fields
from dstream.schema.types import ColumnType, ColumnTypeError, ColumnTypes
from dstream.values.fields import columns_of_fields, field_names

__all__ = ["ColumnSelection", "ItemColumns", "TypedColumns", "checked_columns"]


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """Columns, as the user or a class declares them.

    Attributes:
        names: the names in order.
        types: the type of each.
        may_lack: a missing field of an item counts as None.
    """

    names: tuple[str, ...]
    types: tuple[ColumnType, ...]
    may_lack: bool = True

    @staticmethod
    def of_names(names: tuple[str, ...], *, may_lack: bool = True) -> ColumnSelection:
        """Return columns whose types are inferred from values."""
        return ColumnSelection(names, (OpenType(Layout.FILES),) * len(names), may_lack)


def checked_columns(columns: Any) -> ColumnSelection | None:
    """Return the columns of `columns=`; None for None.

    Raises:
        TypeError: it is neither a class with fields nor several names, or the type of a field is not supported by
            columns.
        ValueError: there are none, or a name occurs twice.
    """
    if isinstance(columns, type):
        types = types_of_fields(columns, Layout.FILES)
        if not types:
            raise TypeError(
                f"columns must be a dataclass, a named tuple or a TypedDict with fields, not {columns.__qualname__}"
            )
        return ColumnSelection(tuple(types), tuple(types.values()))
    names = checked_names(columns, "columns", "several names, or a class with fields")
    return None if names is None else ColumnSelection.of_names(names)


class ItemColumns:
    """The columns of one file; by default the columns of its first item.

    Attributes:
        wanted: the columns; None before the first item.
    """

    def __init__(self, given: ColumnSelection | None) -> None:
        self.wanted = given

    def begin(self, item: Any) -> ColumnSelection:
        """Return the columns.

        Raises:
            TypeError: they are not set, and the item has none.
        """
        if self.wanted is None:
            self.wanted = _columns_of(item)
        return self.wanted

    def of(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the values of the items, column by column.

        Raises:
            TypeError: an item has other fields.
        """
        wanted = self.begin(items[0])
        kinds = list(map(type, items))
        if kinds.count(kinds[0]) == len(kinds):
            return _values(items, wanted)
        rows = [_values([item], wanted) for item in items]
        return [[row[place][0] for row in rows] for place in range(len(wanted.names))]


def _columns_of(item: Any) -> ColumnSelection:
    kind = type(item)
    if field_names(kind):
        types = types_of_fields(kind, Layout.FILES, strict=False)
        return ColumnSelection(tuple(types), tuple(types.values()), may_lack=False)
    if not isinstance(item, dict):
        raise _refused(item, _NO_NAMES if kind is tuple else f"{_name(kind)} has no columns: {_MAP}")
    if wrong := [key for key in item if not isinstance(key, str)]:
        raise _refused(item, f"the keys of a dict become names of columns and must be str, not {shown(wrong[0])}")
    if not item:
        raise _refused(item, "an empty dict says no columns: name them in columns=")
    return ColumnSelection.of_names(tuple(item), may_lack=False)


_MAP = "map() the items to dataclasses, named tuples or dicts before"
_NO_NAMES = "a tuple has no names for its columns: give columns=['a', 'b'], or map() the items to named tuples before"


def _name(kind: type) -> str:
    return f"an item of type {kind.__qualname__}"


def _values(items: Sequence[Any], wanted: ColumnSelection) -> list[Sequence[Any]]:
    """Return the values of items of one type."""
    kind, names = type(items[0]), wanted.names
    if fields := field_names(kind):
        if set(fields) != set(names):
            _refuse_fields(items[0], fields, wanted)
        if issubclass(kind, tuple) and fields == names:
            return list(zip(*items, strict=True))
        return _values_of_fields(items, names)
    if issubclass(kind, dict):
        # A defaultdict would create a value for each missing key, and store it.
        return _values_of_dicts(items if kind is dict else list(map(dict, items)), wanted)
    if kind is not tuple:
        raise _refused(items[0], f"{_name(kind)} has no columns: {_MAP}")
    for item in items:
        if len(item) != len(names):
            raise _refused(item, f"a tuple of {len(item)} does not fit {len(names)} columns ({', '.join(names)})")
    return list(zip(*items, strict=True))


def _values_of_fields(items: Sequence[Any], names: tuple[str, ...]) -> list[Sequence[Any]]:
    try:
        return [*columns_of_fields(names, items)]
    except Exception as error:  # A field was never set, or is a property of the user's that fails.
        _blame_one(error, items, names)
        raise


def _blame_one(error: Exception, items: Sequence[Any], names: tuple[str, ...]) -> None:
    """Attach the item whose fields cannot be read to `error`, if it still fails."""
    for item in items:
        try:
            columns_of_fields(names, [item])
        except Exception as again:
            if type(again) is type(error):
                failed_on(error, item)
            return


def _values_of_dicts(items: Sequence[dict[Any, Any]], wanted: ColumnSelection) -> list[Sequence[Any]]:
    names = wanted.names
    try:
        columns: list[Sequence[Any]] = [list(map(itemgetter(name), items)) for name in names]
    except KeyError:
        for item in items:
            _refuse_fields(item, tuple(item), wanted)
        return [[item.get(name) for item in items] for name in names]
    if set(map(len, items)) != {len(names)}:
        for item in items:
            _refuse_fields(item, tuple(item), wanted)
    return columns


def _refuse_fields(item: Any, fields: tuple[Any, ...], wanted: ColumnSelection) -> None:
    """Refuse an item with a field that is no column, or without a required one."""
    more = [field for field in fields if field not in wanted.names]
    less = [name for name in wanted.names if name not in fields]
    if more:
        raise _refused(item, f"it has a field {shown(more[0])}, and the columns are {', '.join(wanted.names)}: {_ALL}")
    if less and (not wanted.may_lack or not isinstance(item, dict)):
        raise _refused(item, f"it has no field {less[0]!r}, and the columns are {', '.join(wanted.names)}: {_ALL}")


_ALL = "name those of all items in columns=, or map() the items to one shape before"


def _refused(item: Any, why: str) -> TypeError:
    error = TypeError(why)
    failed_on(error, item)
    return error


class TypedColumns:
    """Columns, from the first item of a file on.

    Attributes:
        types: the type of each column, by name; empty before the first item, unless they are set.
    """

    def __init__(self, wanted: ColumnSelection | None) -> None:
        self._columns = ItemColumns(wanted)
        self.types: dict[str, ColumnType] = {} if wanted is None else _by_name(wanted)

    def arrays(self, items: Sequence[Any]) -> tuple[list[Sequence[Any]], list[Any]]:
        """Return the values of the items, column by column, and as arrays of Arrow; the types grow with the values.

        Raises:
            TypeError: an item has other columns, or a value does not fit its column.
        """
        columns = self._columns.of(items)
        self.types = self.types or _by_name(self._columns.begin(items[0]))
        arrays = []
        for (name, known), values in zip(self.types.items(), columns, strict=True):
            self.types[name], array = _typed(name, known, values, items)
            arrays.append(array)
        return columns, arrays

    def names(self) -> ColumnTypes:
        """Return the names of the types."""
        return {name: found.name for name, found in self.types.items()}

    def refuse_what_changed(self, before: dict[str, ColumnType], items: Sequence[Any]) -> None:
        """Refuse items that show more of the type of a column than a file has that was begun without them.

        Raises:
            TypeError: a column had nothing but None so far.
        """
        for name, found in self.types.items():
            if before[name].name != found.name:
                error = TypeError(
                    f"the column {name!r} becomes one of {found.name} here, and the file was begun when it had nothing "
                    "but None or what is empty: say its type, with a class in columns="
                )
                failed_on(error, items[0])
                raise error


def _by_name(wanted: ColumnSelection) -> dict[str, ColumnType]:
    return dict(zip(wanted.names, wanted.types, strict=True))


def _typed(name: str, known: ColumnType, values: Sequence[Any], items: Sequence[Any]) -> tuple[ColumnType, Any]:
    """Return the type of a column and its array; if a value does not fit, name the item in the error."""
    try:
        found = known.refined(values)
        return found, found.array(values)
    except ColumnTypeError:
        # A column is made as a whole; values are checked one by one only to find the cause of an error.
        for value, item in zip(values, items, strict=True):
            try:
                known = known.refined([value])
                known.array([value])
            except ColumnTypeError as misfit:
                error = TypeError(f"the column {name!r} has no place for {_kind(value)}: {misfit}")
                failed_on(error, item)
                raise error from None
        raise


def _kind(value: Any) -> str:
    return f"{type(value).__qualname__} {shown(value)}"
