"""Values of databases that no object of Python can hold, such as a date of the year 10000, and how drivers meet them.

A driver fails at such a value and does not go on behind it, nor does it name the row. Where somebody handles bad rows,
each such value becomes a `LostValue` in its row, which says what it is in the database.
"""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["LostValue", "keep_lost", "lost_in", "refuse_months"]


@dataclass(frozen=True, slots=True, repr=False)
class LostValue:
    """A value that no object of Python can hold.

    Attributes:
        text: the value as the database has it.
        problem: what the driver raised.
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
    """Let a driver make a `LostValue` where it would fail, and add each to `lost`: those of SQLite and psycopg can."""
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
    """Let a driver refuse intervals of months and years: psycopg makes 30 and 365 days of them (3.3)."""
    if connection.dialect.driver == "psycopg":
        driver: Any = connection.connection.driver_connection
        driver.adapters.register_loader("interval", _interval_loader())


def _interval_loader() -> Any:
    from psycopg import DataError
    from psycopg.types.datetime import IntervalLoader

    class Intervals(IntervalLoader):
        def load(self, data: Any) -> datetime.timedelta:
            if b"mon" in bytes(data) or b"year" in bytes(data):
                raise DataError(f"an interval of months has no fixed length: {bytes(data).decode()!r}")
            return super().load(data)

    return Intervals
