"""Items as columns of a file: names, types by annotation or by value, and values column by column.

Columns are the fields of dataclasses and named tuples, the keys of dicts, or what `columns=` of `to_files` names. No
field of an item is left out, and none is made up unless `columns=` names it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from operator import itemgetter
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin

from dstream.base.showing import shown
from dstream.failures.attribution import failed_on
from dstream.schema.file_column_types import (
    SCALARS,
    UNKNOWN,
    ColumnType,
    ColumnTypeError,
    ColumnTypes,
    ListColumn,
    ScalarColumn,
    StructColumn,
    TimestampColumn,
    Valued,
)
from dstream.values.fields import columns_of_fields, field_names, hints_of, is_required_key, is_typed_dict

__all__ = ["ColumnSelection", "ItemColumns", "TypedColumns", "checked_columns", "forms_of_fields"]


def forms_of_fields(kind: Any, *, strict: bool = True) -> dict[str, ColumnType]:
    """Return the form of each field of a class; none for a class without fields.

    Args:
        kind: the class.
        strict: a field whose annotation no column holds is refused. Otherwise its values decide.

    Raises:
        TypeError: a field is of a type that no column holds.
    """
    return _fields(kind, strict, ())


def _fields(kind: Any, strict: bool, around: tuple[Any, ...]) -> dict[str, ColumnType]:
    hints = _hints(kind, strict)
    names = tuple(hints) if is_typed_dict(kind) else field_names(kind)
    forms = {}
    for name in names:
        try:
            forms[name] = _form(hints.get(name, Any), (*around, kind))
        except TypeError as error:
            if strict:
                raise TypeError(f"the field {name} of {kind.__qualname__}: {error}") from None
            forms[name] = UNKNOWN
    return forms


def _hints(kind: Any, strict: bool) -> dict[str, Any]:
    try:
        return hints_of(kind, include_extras=True)
    except Exception as error:
        if not strict:  # The module of a class may not be there where its items are.
            return {}
        raise TypeError(f"an annotation of {kind.__qualname__} cannot be looked up ({error})") from error


def _form(hint: Any, around: tuple[Any, ...]) -> ColumnType:
    """Return the form of an annotation.

    Raises:
        TypeError: no column holds values of this type.
    """
    if hint in (Any, object, None, type(None)) or isinstance(hint, typing.TypeVar):
        return UNKNOWN
    if isinstance(hint, typing.NewType):
        return _form(hint.__supertype__, around)
    if isinstance(hint, type) and get_origin(hint) is None:
        return _form_of_class(hint, around)
    return _form_of_generic(hint, get_origin(hint), get_args(hint), around)


def _form_of_class(kind: Any, around: tuple[Any, ...]) -> ColumnType:
    if kind in SCALARS:
        return ScalarColumn(kind)
    if kind is datetime:
        return TimestampColumn(None)
    if issubclass(kind, enum.Enum):
        return Valued(kind, UNKNOWN).taking(list(kind))
    if kind in _LISTS:
        return ListColumn(UNKNOWN)
    if kind in around:
        raise TypeError(f"it holds {kind.__qualname__} again, and a column has a last level")
    if forms := _fields(kind, True, around) if is_typed_dict(kind) or field_names(kind) else {}:
        return StructColumn(tuple(forms), tuple(forms.values()), _absent_keys(kind))
    raise _no_column(kind.__qualname__)


def _absent_keys(kind: Any) -> frozenset[str]:
    """Return the keys of a TypedDict that may be absent."""
    hints = _hints(kind, True) if is_typed_dict(kind) else {}
    return frozenset(name for name, hint in hints.items() if not is_required_key(kind, name, hint))


_LISTS: tuple[Any, ...] = (
    list,
    tuple,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
)


def _form_of_generic(hint: Any, origin: Any, arguments: tuple[Any, ...], around: tuple[Any, ...]) -> ColumnType:
    if origin is typing.Annotated and arguments[0] is datetime:
        zoned = any(isinstance(each, tzinfo) for each in hint.__metadata__)
        return TimestampColumn(True) if zoned else TimestampColumn(None)
    if origin in (typing.Annotated, Required, NotRequired):
        return _form(arguments[0], around)
    if origin in (Union, types.UnionType):
        return _only((each for each in arguments if each is not type(None)), hint, around)
    if origin is Literal:
        return _only({type(each) for each in arguments}, hint, around)
    if origin in _LISTS and (origin is not tuple or arguments[1:] == (...,)):
        return ListColumn(_form(arguments[0], around))
    if dataclasses.is_dataclass(origin) or field_names(origin or object):
        return _form_of_class(origin, around)
    raise _no_column(str(hint).removeprefix("typing."))


def _only(hints: Iterable[Any], hint: Any, around: tuple[Any, ...]) -> ColumnType:
    found = list(hints)
    if len(found) != 1:
        raise _no_column(str(hint).removeprefix("typing."))
    return _form(found[0], around)


def _no_column(name: str) -> TypeError:
    return TypeError(
        f"no column holds values of type {name}; str, int, float, bool, bytes, Decimal, date, time, datetime, "
        "timedelta, Enum, lists of these and classes with fields are held"
    )


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """Columns, as the user or a class says them.

    Attributes:
        names: in order.
        forms: what stands in each.
        may_lack: an item that has no such field has None there.
    """

    names: tuple[str, ...]
    forms: tuple[ColumnType, ...]
    may_lack: bool = True


def checked_columns(columns: Any) -> ColumnSelection | None:
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
        return ColumnSelection(tuple(forms), tuple(forms.values()))
    names = _checked_names(columns)
    return ColumnSelection(names, (UNKNOWN,) * len(names))


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

    def __init__(self, given: ColumnSelection | None) -> None:
        self.wanted = given

    def begin(self, item: Any) -> ColumnSelection:
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


def _columns_of(item: Any) -> ColumnSelection:
    kind = type(item)
    if field_names(kind):
        forms = forms_of_fields(kind, strict=False)
        return ColumnSelection(tuple(forms), tuple(forms.values()), may_lack=False)
    if not isinstance(item, dict):
        raise _refused(item, _NO_NAMES if kind is tuple else f"{_name(kind)} has no columns: {_MAP}")
    if wrong := [key for key in item if not isinstance(key, str)]:
        raise _refused(item, f"the keys of a dict become names of columns and must be str, not {shown(wrong[0])}")
    if not item:
        raise _refused(item, "an empty dict says no columns: name them in columns=")
    return ColumnSelection(tuple(item), (UNKNOWN,) * len(item), may_lack=False)


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


class TypedColumns:
    """Columns, from the first item of a file on.

    Attributes:
        forms: of each column, by name; empty until there is an item, unless they are given.
    """

    def __init__(self, wanted: ColumnSelection | None) -> None:
        self._columns = ItemColumns(wanted)
        self.forms: dict[str, ColumnType] = {} if wanted is None else _by_name(wanted)

    def taken(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the values of the items, column by column; the forms take them.

        Raises:
            TypeError: an item has other columns, or a value does not fit its column.
        """
        columns = self._columns.of(items)
        self.forms = self.forms or _by_name(self._columns.begin(items[0]))
        for (name, form), values in zip(self.forms.items(), columns, strict=True):
            self.forms[name] = _of_each(name, form, values, items, lambda known, found: known.taking(found))
        return columns

    def arrays(self, columns: Sequence[Sequence[Any]], items: Sequence[Any]) -> list[Any]:
        """Return the values of the items, which were taken, as arrays of Arrow.

        Raises:
            TypeError: a value does not fit its column.
        """
        return [
            _of_each(name, form, values, items, lambda known, found: known.array(found))
            for (name, form), values in zip(self.forms.items(), columns, strict=True)
        ]

    def types(self) -> ColumnTypes:
        """Return what is known of the columns, in words."""
        return {name: form.words for name, form in self.forms.items()}

    def refuse_what_changed(self, before: dict[str, ColumnType], items: Sequence[Any]) -> None:
        """Refuse items that tell more of a column than the file says which was begun without them.

        Raises:
            TypeError: a column had nothing but None so far.
        """
        for name, form in self.forms.items():
            if before[name].words != form.words:
                error = TypeError(
                    f"the column {name!r} becomes one of {form.words} here, and the file was begun when it had nothing "
                    "but None or what is empty: say its type, with a class in columns="
                )
                failed_on(error, items[0])
                raise error


def _by_name(wanted: ColumnSelection) -> dict[str, ColumnType]:
    return dict(zip(wanted.names, wanted.forms, strict=True))


def _of_each(name: str, form: ColumnType, values: Sequence[Any], items: Sequence[Any], what: Callable[..., Any]) -> Any:
    """Do something with all values of a column; if one of them does not fit, say which."""
    try:
        return what(form, values)
    except ColumnTypeError:
        for value, item in zip(values, items, strict=True):
            try:
                form = form.taking([value])
                form.array([value])
            except ColumnTypeError as misfit:
                error = TypeError(f"the column {name!r} has no place for {_kind(value)}: {misfit}")
                failed_on(error, item)
                raise error from None
        raise


def _kind(value: Any) -> str:
    return f"{type(value).__qualname__} {shown(value)}"
