"""Items as rows: which columns they have, and the values column by column, for CSV, Parquet and Avro.

Columns are the fields of dataclasses and named tuples, the keys of dicts, or what `columns=` of `to_files` names. No
field of an item is left out, and none is made up unless `columns=` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from dstream.values.blaming import failed_on, shown
from dstream.values.fields import columns_of_fields, field_names
from reducers.annotated_forms import forms_of_fields
from reducers.column_forms import UNKNOWN
from reducers.scalar_forms import Form

__all__ = ["ItemColumns", "Wanted", "checked_columns"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns, as the user or a class says them.

    Attributes:
        names: in order.
        forms: what stands in each.
        may_lack: an item that has no such field has None there.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
    may_lack: bool = True


def checked_columns(columns: Any) -> Wanted | None:
    """Return the columns that `columns=` says; None stays None.

    Raises:
        TypeError: it is neither a class with fields nor several names, or a field is of a type that no column has.
        ValueError: there are none, or two of one name.
    """
    if columns is None:
        return None
    if isinstance(columns, type):
        forms = forms_of_fields(columns)
        if not forms:
            raise TypeError(
                f"columns must be a dataclass, a named tuple or a TypedDict with fields, not {columns.__qualname__}"
            )
        return Wanted(tuple(forms), tuple(forms.values()))
    names = _checked_names(columns)
    return Wanted(names, (UNKNOWN,) * len(names))


def _checked_names(columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be several names, or a class with fields, not {shown(columns)}")
    names = tuple(columns)
    if not names:
        raise ValueError("columns is empty: leave it out, or give at least one name")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"columns must hold names, not {shown(wrong[0])}")
    if len(set(names)) < len(names):
        raise ValueError(f"columns holds {next(name for name in names if names.count(name) > 1)!r} more than once")
    return names


class ItemColumns:
    """The columns of one file; unless they are given, its first item decides.

    Attributes:
        wanted: the columns; None until there is an item.
    """

    def __init__(self, given: Wanted | None) -> None:
        self.wanted = given

    def begin(self, item: Any) -> Wanted:
        """Return the columns.

        Raises:
            TypeError: they are not given, and the item has none.
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


def _columns_of(item: Any) -> Wanted:
    kind = type(item)
    if field_names(kind):
        forms = forms_of_fields(kind, strict=False)
        return Wanted(tuple(forms), tuple(forms.values()), may_lack=False)
    if not isinstance(item, dict):
        raise _refused(item, _NO_NAMES if kind is tuple else f"{_name(kind)} has no columns: {_MAP}")
    if wrong := [key for key in item if not isinstance(key, str)]:
        raise _refused(item, f"the keys of a dict become names of columns and must be str, not {shown(wrong[0])}")
    if not item:
        raise _refused(item, "an empty dict says no columns: name them in columns=")
    return Wanted(tuple(item), (UNKNOWN,) * len(item), may_lack=False)


_MAP = "map() the items to dataclasses, named tuples or dicts before"
_NO_NAMES = "a tuple has no names for its columns: give columns=['a', 'b'], or map() the items to named tuples before"


def _name(kind: type) -> str:
    return f"an item of type {kind.__qualname__}"


def _values(items: Sequence[Any], wanted: Wanted) -> list[Sequence[Any]]:
    """Return the values of items of one type."""
    kind, names = type(items[0]), wanted.names
    if fields := field_names(kind):
        if set(fields) != set(names):
            _refuse_fields(items[0], fields, wanted)
        if issubclass(kind, tuple) and fields == names:
            return list(zip(*items, strict=True))
        return _values_of_fields(items, names)
    if issubclass(kind, dict):
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
    """Keep with `error` the item whose fields cannot be read, if it is still so."""
    for item in items:
        try:
            columns_of_fields(names, [item])
        except Exception as again:
            if type(again) is type(error):
                failed_on(error, item)
            return


def _values_of_dicts(items: Sequence[dict[Any, Any]], wanted: Wanted) -> list[Sequence[Any]]:
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


def _refuse_fields(item: Any, fields: tuple[Any, ...], wanted: Wanted) -> None:
    """Refuse an item with a field that is no column, or without one that has to be there."""
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
