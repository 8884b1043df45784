"""`dstream collections`: the collections of a storage, without Spark, and their export to files."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args
from uuid import UUID

import click

from dstream.base.showing import did_you_mean
from dstream.collections import IStreamList, IStreamMap
from dstream.collections.base import type_shown
from dstream.collections.counter import IStreamCounter
from dstream.collections.queue import IStreamQueue
from dstream.collections.set import IStreamSet
from dstream.command.program import SAYING, connected, fail, storage_option
from dstream.errors import CollectionDestroyedError, DStreamError
from dstream.session import CollectionName, Context
from dstream.spi.store import Kind, Options

__all__ = ["collections", "export_to", "refusal"]


ExportableCollection = IStreamMap[Any, Any] | IStreamList[Any] | IStreamSet[Any]


def refusal(file: Path, force: bool) -> str | None:
    """Return why nothing can be written to `file`, or None."""
    if file.suffix.lower() not in _WRITERS:
        return f"{file} must end in {', '.join(_WRITERS)}: the ending says what is written"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    if file.is_dir() or (file.exists() and not force):
        return f"{file} exists; --force replaces it" if not file.is_dir() else f"{file} is a folder"
    return None


def export_to(file: Path, collection: ExportableCollection) -> int:
    """Write a collection into `file`, which appears when it is complete; return how many entries or items."""
    # In the same folder, since `os.replace` works inside of one filesystem alone.
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        count = _WRITERS[file.suffix.lower()](unfinished, collection)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _parquet(file: Path, collection: ExportableCollection) -> int:
    import pyarrow.parquet

    if isinstance(collection, IStreamSet):
        items = collection.to_arrow()
        pyarrow.parquet.write_table(items, file)
        return int(items.num_rows)
    count = 0
    with pyarrow.parquet.ParquetWriter(file, collection.store.schema()) as writer:
        for split in collection._splits():
            for batch in split.read_arrow():
                writer.write_batch(batch)
                count += batch.num_rows
    return count


def _csv(file: Path, collection: ExportableCollection) -> int:
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(_columns(collection))
        count = 0
        for row in _rows(collection):
            cells = list(map(_cell, row))
            try:
                writer.writerow(cells)
            except UnicodeEncodeError as error:
                raise TypeError(f"{error.object!r:.200} holds half of a surrogate pair: export to .jsonl") from error
            count += 1
    return count


def _cell(value: Any) -> Any:
    plain = _plain(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


def _json_lines(file: Path, collection: ExportableCollection) -> int:
    columns = _columns(collection)
    with open(file, "wb") as lines:
        count = 0
        for row in _rows(collection):
            item = dict(zip(columns, map(_plain, row), strict=True))
            try:
                line = json.dumps(item, ensure_ascii=False).encode()
            except UnicodeEncodeError:  # Half of a surrogate pair has no bytes in UTF-8, and an escape in JSON.
                line = json.dumps(item).encode()
            lines.write(line + b"\n")
            count += 1
    return count


_WRITERS: dict[str, Callable[[Path, ExportableCollection], int]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".jsonl": _json_lines,
}


def _columns(collection: ExportableCollection) -> tuple[str, ...]:
    return ("key", "value") if isinstance(collection, IStreamMap) else ("value",)


def _rows(collection: ExportableCollection) -> Iterator[tuple[Any, ...]]:
    if isinstance(collection, IStreamMap):
        yield from ((entry[0], entry[1]) for entry in collection.items())
    else:
        yield from ((item,) for item in collection)


def _plain(value: Any) -> Any:
    """Return a value in the terms of JSON.

    Raises:
        TypeError: JSON has no terms for it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", ())):
        return {name: _plain(each) for name, each in zip(names, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    raise TypeError(f"{value!r} has no form in JSON or CSV: export to .parquet, or write a program")


F = TypeVar("F", bound=Callable[..., Any])
AnyCollection = IStreamMap[Any, Any] | IStreamList[Any] | IStreamSet[Any] | IStreamCounter | IStreamQueue[Any]

_LOOKED_AT = 1000
"""The number of values that `show` reads."""

_WIDEST = 1000
"""Columns of a table that is written to no terminal: nothing is cut."""


def _of_one(command: F) -> F:
    """Add the arguments that name one collection, and its storage."""
    name = click.argument("name")
    kind = click.option("--kind", type=click.Choice(get_args(Kind)), help="Which, if kinds share the name.")
    return name(kind(storage_option(command)))


@click.group(context_settings=SAYING, invoke_without_command=True)
@storage_option
@click.pass_context
def collections(ctx: click.Context, storage: str | None) -> None:
    """List the collections of a storage, or work with one of them.

    Neither Spark nor Java is needed. --storage may stand before or behind the subcommand.
    """
    ctx.obj = storage
    if ctx.invoked_subcommand is None:
        with connected("local", storage=storage) as context:
            _list(context)


@collections.command(context_settings=SAYING)
@_of_one
def show(name: str, kind: Kind | None, storage: str | None) -> None:
    """Show how a collection was made, its size and its place."""
    with _found(name, kind, storage) as (kind_found, collection):
        known = [("kind", kind_found), ("name", name), ("size", _size(collection))]
        known += [(each, type_shown(getattr(collection.options, each))) for each in _options_of(collection)]
        known += [("values", _mixed_or_unreadable(collection)), ("location", collection.location or "")]
        for label, text in known:
            if text:
                click.echo(f"{label.replace('_', ' '):<12}{text}")


def _size(collection: AnyCollection) -> str:
    return f"{collection.get() if isinstance(collection, IStreamCounter) else collection.size():,}"


def _options_of(collection: AnyCollection) -> list[str]:
    """Return the options that its user may choose."""
    if isinstance(collection, IStreamMap | IStreamList):
        return [each.name for each in fields(Options)]
    return ["buckets", "strict"] if isinstance(collection, IStreamSet) else []


def _mixed_or_unreadable(collection: AnyCollection) -> str:
    """Return which types the first values have if these are several, or why they cannot be read; otherwise ""."""
    if isinstance(collection, IStreamCounter | IStreamQueue):
        return ""
    values = collection.values() if isinstance(collection, IStreamMap) else collection
    try:
        kinds = Counter(type(value).__qualname__ for value in islice(values, _LOOKED_AT))
    except TypeError as error:
        return str(error)
    return f"mixed: {', '.join(kind for kind, _ in kinds.most_common())}" if len(kinds) > 1 else ""


@collections.command(context_settings=SAYING)
@_of_one
@click.option("-n", "count", default=10, show_default=True, type=click.IntRange(0), help="How many.")
def head(name: str, kind: Kind | None, storage: str | None, count: int) -> None:
    """Print the first entries or items."""
    with _found(name, kind, storage) as (_, collection):
        collection.head(count)


@collections.command(context_settings=SAYING)
@_of_one
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def export(name: str, kind: Kind | None, storage: str | None, file: Path, force: bool) -> None:
    """Write a collection into a file.

    The ending of FILE says how: .parquet, .csv or .jsonl. The file appears when it is complete.
    """
    if why := refusal(file, force):
        fail(why)
    with _found(name, kind, storage) as (kind_found, collection):
        if isinstance(collection, IStreamCounter | IStreamQueue):
            fail(f"a {kind_found} has no entries or items to export: `dstream collections head {name}` shows it")
        written = export_to(file, collection)
        click.echo(f"{written:,} written to {file}", err=True)


@collections.command(context_settings=SAYING)
@_of_one
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(name: str, kind: Kind | None, storage: str | None, yes: bool) -> None:
    """Remove a collection with all that is in it."""
    with _found(name, kind, storage) as (kind_found, collection):
        if not yes:
            click.confirm(f"Destroy the {kind_found} {name!r} with {collection.size():,} in it?", abort=True, err=True)
        collection.destroy()


def _list(context: Context) -> None:
    names = context.collections()
    if not names:
        click.echo(f"no collections in {context.running_storage().url}", err=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("kind", "name", "size", "types", box=None, pad_edge=False)
    for each in names:
        table.add_row(*(Text(cell) for cell in (each.kind, each.name, *_size_and_types(context, each))))
    Console(width=None if sys.stdout.isatty() else _WIDEST).print(table)


def _size_and_types(context: Context, each: CollectionName) -> tuple[str, str]:
    try:
        collection = _opened(context, each)
        keys = [collection.key_type] if isinstance(collection, IStreamMap) else []
        types = [] if isinstance(collection, IStreamQueue) else [*keys, collection.value_type]
        return _size(collection), " -> ".join(type_shown(hint) or "?" for hint in types)
    except CollectionDestroyedError:
        return "", "destroyed a moment ago"
    except (DStreamError, TypeError, OSError) as error:
        return "?", str(error)


@contextmanager
def _found(name: str, kind: Kind | None, storage: str | None) -> Iterator[tuple[Kind, AnyCollection]]:
    """Open the one collection of that name, or fail with a sentence about why there is none."""
    with connected("local", storage=storage or click.get_current_context().find_object(str)) as context:
        names = [each for each in context.collections() if kind in (None, each.kind)]
        matches = [each for each in names if each.name == name]
        if not matches:
            fail(_missing(name, kind, [each.name for each in names], context))
        if len(matches) > 1:
            kinds = " and a ".join(each.kind for each in matches)
            fail(f"there is a {kinds} named {name!r}; say which one with --kind")
        try:
            yield matches[0].kind, _opened(context, matches[0])
        except (TypeError, OSError) as error:  # an unknown class of the values, a file that cannot be written
            fail(str(error))


def _missing(name: str, kind: Kind | None, names: list[str], context: Context) -> str:
    hint = did_you_mean(name, names, n=3) or "`dstream collections` lists what there is"
    return f"there is no {kind or 'collection'} {name!r} in {context.running_storage().url}; {hint}"


def _opened(context: Context, each: CollectionName) -> AnyCollection:
    """Open an existing collection: the methods of a context would make it again if it were destroyed meanwhile."""
    found: AnyCollection | None = context.existing(each.kind, each.name)
    if found is None:
        raise CollectionDestroyedError(f"the {each.kind} {each.name!r} was destroyed a moment ago")
    return found
