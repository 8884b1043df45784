"""`Entries`: rows that are entries, whose keys and values stand in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dstream.engine.kernels.columns.column_values import (
    Column,
    Same,
    Tuples,
    Withheld,
    items_of,
    rows_at,
    size_of_column,
)
from dstream.engine.kernels.columns.unmade import Unmade
from dstream.values import Entry
from dstream.values.entry import as_entry

__all__ = ["Entries", "are_unmade", "entries_of", "with_parts"]


class Entries(Unmade):
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
            Withheld: entries have no such part.
        """
        if name not in Entry._fields:
            raise Withheld(f"a part {name} that entries do not have")
        return self.members[Entry._fields.index(name)]


def are_unmade(rows: Column) -> bool:
    """Say whether rows, or parts of them, are items that are not made and stand in no columns either."""
    if isinstance(rows, Tuples | Entries):
        return any(map(are_unmade, rows.members))
    return isinstance(rows, Unmade)


def entries_of(pairs: Column) -> Column:
    """Return entries with the members of pairs.

    Raises:
        Withheld: they are no pairs.
    """
    if isinstance(pairs, Same) and type(pairs.value) is tuple and len(pairs.value) == 2:
        return Same(as_entry(pairs.value), pairs.size)
    if not isinstance(pairs, Tuples) or len(pairs.members) != 2:
        raise Withheld("an entry of something else than a pair")
    key, value = pairs.members
    return Entries((key, value))


def with_parts(items: Column, size: int) -> Column:
    """Return items that are tuples of so many members, or entries of two.

    Raises:
        Withheld: it is not known that all of them are.
    """
    if isinstance(items, Same):
        is_entry = type(items.value) is Entry and size == 2
        is_known = is_entry or (type(items.value) is tuple and len(items.value) == size)
    else:
        is_known = (isinstance(items, Tuples) and len(items.members) == size) or (
            isinstance(items, Entries) and size == 2
        )
    if not is_known:
        raise Withheld("items that may be no tuples of so many members")
    return items
