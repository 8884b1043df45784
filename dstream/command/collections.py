"""`dstream collections`: what is in a storage, looked at without Spark. Looking makes nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from dstream.command.options import connected, fail, storage_option
from dstream.command.program import SAYING
from dstream.distributed import IStreamList, IStreamMap
from dstream.distributed.counter import IStreamCounter
from dstream.distributed.queue import IStreamQueue
from dstream.distributed.set import IStreamSet
from dstream.errors import CollectionDestroyedError, DStreamError
from dstream.session import CollectionName, Context
from dstream.spi.store import Kind, Options

__all__ = ["collections"]

F = TypeVar("F", bound=Callable[..., Any])
AnyCollection = IStreamMap[Any, Any] | IStreamList[Any] | IStreamSet[Any] | IStreamCounter | IStreamQueue[Any]

_LOOKED_AT = 1000
"""How many values `show` looks at."""

_WIDEST = 1000
"""Columns of a table that goes to no terminal: nothing is cut."""


def _of_one(command: F) -> F:
    """Add what names one collection, and its storage."""
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
        known += [(each, _shown(getattr(collection.options, each))) for each in _options_of(collection)]
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
    """Say which types the first values have if these are several, or why they cannot be read; otherwise nothing."""
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
    from dstream.command.exporting import export_to, refusal

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
        return _size(collection), " -> ".join(_shown(hint) or "?" for hint in types)
    except CollectionDestroyedError:
        return "", "destroyed a moment ago"
    except (DStreamError, TypeError, OSError) as error:
        return "?", str(error)


@contextmanager
def _found(name: str, kind: Kind | None, storage: str | None) -> Iterator[tuple[Kind, AnyCollection]]:
    """Open the one collection of that name, or say in a sentence why there is none."""
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
    close = get_close_matches(name, names, n=3)
    hint = (
        f"; did you mean {' or '.join(map(repr, close))}?" if close else "; `dstream collections` lists what there is"
    )
    return f"there is no {kind or 'collection'} {name!r} in {context.running_storage().url}{hint}"


def _opened(context: Context, each: CollectionName) -> AnyCollection:
    """Open what is there: the methods of a context would make it again if it were destroyed meanwhile."""
    found: AnyCollection | None = context.existing(each.kind, each.name)
    if found is None:
        raise CollectionDestroyedError(f"the {each.kind} {each.name!r} was destroyed a moment ago")
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value.__qualname__ if isinstance(value, type) else str(value).removeprefix("typing.")
