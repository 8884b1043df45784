"""`partition_by`: in which folder below the target an item stands, as Hive calls it: `country=NO/year=2024`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, TypeAlias

from dstream.values.blaming import each, shown
from reducers.writing import checked_function, checked_text

__all__ = ["PartitionBy", "PartitionFolders", "checked_partitions"]

PartitionBy: TypeAlias = "str | Iterable[str] | Mapping[str, Callable[[Any], object]]"

NONE = "__HIVE_DEFAULT_PARTITION__"
"""How Hive, Spark and DuckDB write None."""


def checked_partitions(given: Any) -> PartitionFolders:
    """Return the folders that `partition_by=` says.

    Raises:
        TypeError: it is neither a name, nor several, nor functions by name.
        ValueError: there are none, or one cannot begin the name of a folder.
    """
    if given is None:
        return PartitionFolders(())
    if callable(given):
        raise TypeError("partition_by needs a name for what a function gives: write partition_by={'name': function}")
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"partition_by must be the name of a field, or several, not {shown(given)}")
    functions = given if isinstance(given, Mapping) else {}
    parts = tuple((_checked_name(name), _checked_part(name, functions.get(name))) for name in given)
    if not parts or len(dict(parts)) < len(parts):
        raise ValueError(f"partition_by must hold names, each once, not {shown(given)}")
    return PartitionFolders(parts)


def _checked_name(name: Any) -> str:
    if checked_text(name, "a name in partition_by")[0] in "._" or set(name) & _ESCAPED:
        raise ValueError(f"a name in partition_by begins a name of folders, which {name!r} cannot")
    return str(name)


def _checked_part(name: str, function: Any) -> Callable[[Any], object]:
    return _Field(name) if function is None else checked_function(function, f"partition_by[{name!r}]")


@dataclass(frozen=True, slots=True)
class _Field:
    """Gives a field of an item: a key of a dict, or an attribute."""

    name: str

    def __call__(self, item: Any) -> object:
        if isinstance(item, dict) and self.name in item:
            return item[self.name]
        try:
            return getattr(item, self.name)
        except AttributeError:
            raise TypeError(f"partition_by: the item has no field {self.name!r}") from None


@dataclass(frozen=True, slots=True)
class PartitionFolders:
    """Says for items in which folders they stand.

    Attributes:
        parts: of each level its name, and what gives the value of an item.
    """

    parts: tuple[tuple[str, Callable[[Any], object]], ...]

    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields whose values name folders.

        Raises:
            TypeError: a function names them.
        """
        if functions := [name for name, value in self.parts if not isinstance(value, _Field)]:
            raise TypeError(
                f"partition_by of format='delta' names columns, and {functions[0]!r} is a function: "
                "map() the items to have such a field before"
            )
        return tuple(name for name, _ in self.parts)

    def divided(self, items: Sequence[Any]) -> Iterable[tuple[str, Sequence[Any]]]:
        """Return for each folder its items, in order. The name of a folder ends with a slash, unless it is empty.

        Raises:
            TypeError: a value has no text that names a folder.
        """
        if not self.parts:
            return [("", items)]
        folders: dict[str, list[Any]] = {}
        for folder, item in zip(each(self._folder, items), items, strict=True):
            folders.setdefault(folder, []).append(item)
        return folders.items()

    def _folder(self, item: Any) -> str:
        return "".join([_level(name, value(item)) for name, value in self.parts])


_LONGEST = 255
"""How many bytes the name of a folder has at most, where files are kept."""


def _level(name: str, value: Any) -> str:
    level = f"{name}={_escaped(_text(name, value))}"
    if len(level.encode()) > _LONGEST:  # Half a character has no bytes, which is an error here, too.
        raise ValueError(f"partition_by: {name!r} is {shown(value)}, and a folder has a name of 255 bytes at most")
    return f"{level}/"


def _text(name: str, value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):  # A datetime is one, too.
        return value.isoformat()
    if not isinstance(value, str | int):
        raise TypeError(
            f"partition_by: {name!r} is {shown(value)}; a folder is called after a str, int, bool, date or None"
        )
    if value == NONE:
        raise ValueError(f"partition_by: {name!r} is the text {NONE!r}, which means None")
    return str(value)


_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^<>| ") | frozenset(map(chr, range(32)))


def _escaped(text: str) -> str:
    """Return a text as Hive names folders: what a file system or a URL may not take as `%2F`."""
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in text)
