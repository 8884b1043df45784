"""Records of rows of a database: named tuples, or a class of the user; and values that Python cannot represent.

A driver fails at a value such as a date of the year 10000 and does not read past it, nor does it name the row. Where
bad rows are handled, each such value becomes a `LostValue` in its row, with its form in the database.
"""

from __future__ import annotations

import collections
import datetime
import functools
import json
import keyword
import sqlite3
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dstream.base.showing import repeated, shown
from dstream.errors import SourceError
from dstream.schema.decoders import (
    DecodeError,
    Decoder,
    ItemDecoder,
    ModelDecoder,
    OptionalDecoder,
    RecordDecoder,
    UnionDecoder,
)
from dstream.schema.encoders import UnionField, json_fields, unions_of
from dstream.schema.record_decoders import SQL, form_of, missing_columns

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["LostValue", "Maker", "Rows", "keep_lost", "lost_in", "refuse_months", "rows_of", "unions_of_rows"]


Maker = Callable[[Sequence[Any], int], list[Any]]
"""Function of rows, and the number of earlier rows, that returns items."""


def rows_of(kind: Any) -> Rows:
    """Return a function that makes a `kind` of each row; None: named tuples.

    Raises:
        TypeError: it is no dataclass, named tuple, TypedDict, attrs class or pydantic model, or a field is of a type
            that is not read.
    """
    if kind is None:
        return Rows(None)
    record = form_of(kind, SQL)
    if not isinstance(record, RecordDecoder):  # pydantic accepts what drivers make.
        return Rows(RowOfModel(record.kind, json_fields(record.kind)))
    fields = [(name, fitting, _native(form), is_required) for name, fitting, form, is_required in record.fields]
    return Rows(RecordDecoder(record.kind, record.expected, fields))


def _native(form: Decoder) -> Decoder:
    """Return a decoder that also accepts 0 and 1 as bools, unless they may be numbers."""
    if isinstance(form, OptionalDecoder):
        return OptionalDecoder(_native(form.form))
    kinds = [getattr(each, "kind", None) for each in (form.forms if isinstance(form, UnionDecoder) else (form,))]
    return BoolOfNumber(form) if bool in kinds and {bool, str, bytes, type(None)}.issuperset(kinds) else form


@dataclass(frozen=True)
class RowOfModel(ModelDecoder):
    """Decoder of a row as a pydantic model.

    Attributes:
        nested: the columns that have JSON, which SQLite returns as strings.
    """

    nested: tuple[str, ...]

    def made(self, value: Any) -> Any:
        """Return the model of a row whose nested fields are JSON."""
        texts = [name for name in self.nested if type(value.get(name)) is str]
        return ModelDecoder.made(self, {**value, **{name: json.loads(value[name]) for name in texts}})


@functools.lru_cache(maxsize=1024)
def unions_of_rows(kind: Any) -> tuple[UnionField, ...]:
    """Return the fields of a class whose values may be read back as others from a database."""
    return tuple(replace(union, decoder=_native(union.decoder)) for union in unions_of(kind, SQL))


@dataclass(frozen=True)
class BoolOfNumber:
    """Decoder of values that may be bools, for which SQLite has numbers."""

    form: Decoder

    @property
    def expected(self) -> str:
        """The expected type, in a word."""
        return self.form.expected

    def made(self, value: Any) -> Any:
        """Return the bool of 0 or 1, or of a value of the inner form."""
        return bool(value) if type(value) is int and value in (0, 1) else self.form.made(value)


@dataclass(frozen=True, slots=True)
class Rows:
    """Function that makes items of rows.

    Attributes:
        form: the class of each item; None: a named tuple.
    """

    form: ItemDecoder | None

    def maker(self, names: tuple[str, ...], call: str) -> Maker:
        """Return a function that makes items of rows with these columns.

        Raises:
            SourceError: a name is repeated, or means two fields of a named tuple; a field has no column.
        """
        if twice := repeated(names):
            raise _ambiguous(call, f"the query gives {twice} more than once")
        form = self.form
        if form is None:
            fields = _field_names(names, call)
            return lambda rows, before: list(map(_row_kind(fields)._make, rows))
        if missing := missing_columns(form, names):
            lacks = f"the query gives no column {', '.join(missing)} of {form.expected}"
            raise SourceError(f"{call}: {lacks}; there are {', '.join(names)}")
        return lambda rows, before: [
            _made(form, dict(zip(names, row, strict=True)), call, number)
            for number, row in enumerate(rows, start=before + 1)
        ]


def _made(form: ItemDecoder, row: dict[str, Any], call: str, number: int) -> Any:
    try:
        return form.made(row)
    except DecodeError as error:
        raise SourceError(f"{call}, row {number:,}: {error}: {shown(row)}") from error.__cause__


def _ambiguous(call: str, problem: str) -> SourceError:
    return SourceError(f"{call}: {problem}: name one of them apart with AS")


def _field_names(names: tuple[str, ...], call: str) -> tuple[str, ...]:
    """Return the field names of a named tuple with these columns, positional if they are no identifiers.

    Raises:
        SourceError: the name of one column would be read as another one.
    """
    # Python reads identifiers in this normal form.
    read = [unicodedata.normalize("NFKC", name) for name in names]
    fields = tuple(name if _is_field(name) else f"_{place}" for place, name in enumerate(read))
    places = {name: place for place, name in enumerate(read)}
    for place, (name, field) in enumerate(zip(names, fields, strict=True)):
        other = places.get(field, place)
        if other != place and field == read[place]:
            raise _ambiguous(call, f"Python reads {name!r} and {names[other]!r} as one name")
        if other != place:
            becomes = f"which column {place + 1}, {name!r}, becomes by its place"
            raise _ambiguous(call, f"column {other + 1} is called {field!r}, {becomes}")
    return fields


def _is_field(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


@functools.lru_cache(maxsize=256)
def _row_kind(names: tuple[str, ...]) -> Any:
    """Return the class of rows with these columns. It is found again by its names in every process."""
    # The names come from a query.
    kind: Any = collections.namedtuple("Row", names, rename=True)  # type: ignore[misc]
    return type("Row", (kind,), {"__slots__": (), "__reduce__": lambda row: (_row, (names, *row))})


def _row(names: tuple[str, ...], *values: Any) -> Any:
    return _row_kind(names)._make(values)


@dataclass(frozen=True, slots=True, repr=False)
class LostValue:
    """A value that no object of Python can represent.

    Attributes:
        text: the value in the database's notation.
        problem: the error of the driver.
    """

    text: str
    problem: Exception

    def __repr__(self) -> str:
        return self.text


def lost_in(columns: Sequence[str], row: Sequence[Any]) -> tuple[str, LostValue] | None:
    """Return the first column of a row with a lost value, also inside of an array, and the value."""
    for column, value in zip(columns, row, strict=True):
        if (found := _lost(value)) is not None:
            return column, found
    return None


def _lost(value: Any) -> LostValue | None:
    if isinstance(value, LostValue):
        return value
    parts = map(_lost, value) if isinstance(value, list) else ()
    return next((part for part in parts if part is not None), None)


def keep_lost(connection: sa.Connection, lost: list[LostValue]) -> None:
    """Configure a driver to make a `LostValue` where it would fail, and append it to `lost`: for SQLite and psycopg."""
    driver: Any = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.text_factory = _texts(lost)
    elif connection.dialect.driver == "psycopg":
        from psycopg.types import datetime as types

        loaders = {"date": types.DateLoader, "timestamp": types.TimestampLoader, "timestamptz": types.TimestamptzLoader}
        for name, loader in {**loaders, "interval": _interval_loader()}.items():
            driver.adapters.register_loader(name, _keeping(loader, lost))


def _texts(lost: list[LostValue]) -> Any:
    def text(data: bytes) -> Any:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            lost.append(LostValue(repr(data), error))
            return lost[-1]

    return text


def _keeping(loader: Any, lost: list[LostValue]) -> Any:
    class Keeping(loader):  # type: ignore[misc]  # a class of psycopg
        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except Exception as error:
                lost.append(LostValue(bytes(data).decode(errors="replace"), error))
                return lost[-1]

    return Keeping


def refuse_months(connection: sa.Connection) -> None:
    """Configure a driver to refuse intervals of months and years: psycopg converts them to 30 and 365 days (3.3)."""
    if connection.dialect.driver == "psycopg":
        driver: Any = connection.connection.driver_connection
        driver.adapters.register_loader("interval", _interval_loader())


def _interval_loader() -> Any:
    from psycopg import DataError
    from psycopg.types.datetime import IntervalLoader

    class Intervals(IntervalLoader):
        def load(self, data: Any) -> datetime.timedelta:
            # PostgreSQL writes intervals as `1 year 2 mons 3 days`, unless its style is another one.
            if b"mon" in bytes(data) or b"year" in bytes(data):
                raise DataError(f"an interval of months has no fixed length: {bytes(data).decode()!r}")
            return super().load(data)

    return Intervals
