"""A storage in SQLite, and the file behind it for those who damage it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dstream.spi.store import Options
from dstream.storage import Settings, open_storage


@dataclass(frozen=True)
class Base:
    """A database and how to reach it."""

    path: Path

    def storage(self, **settings: Any) -> Any:
        """Open a handle."""
        return open_storage(f"sqlite:{self.path}", Settings(**settings))

    def map(self, name: str = "m", **options: Any) -> Any:
        """Return a map."""
        return self.storage(pickle="trusted").create("map", name, Options(**options))

    def list(self, *items: Any) -> Any:
        """Return a list of some items."""
        store = self.storage(pickle="trusted").create("list", "l", Options())
        store.extend(items)
        return store

    def put(self, store: Any, **entries: Any) -> None:
        """Put entries in one change."""
        store.update(list(entries), lambda old: list(entries.values()))

    def content(self, store: Any) -> dict[Any, Any]:
        """Return all entries."""
        return dict(pair for split in store.splits(2) for pair in split.read())

    def sql(self, statement: str, *arguments: Any) -> list[Any]:
        """Do something to the database behind the back of dstream."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(statement, arguments).fetchall()


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """An empty place for a database."""
    base = Base(tmp_path / "data.db")
    yield base
    base.storage().close()
