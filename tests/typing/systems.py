"""The types of what reads and writes other systems, from the user's side; two type checkers read this file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

from dstream import Context, IStreamMap, JournalEvent, Stream
from dstream.collections import LiveEntry
from dstream.spi import Reducer, Source, StreamSource
from reducers import processing_imap, replacing, to_imap, to_socket, to_sql, updating_imap
from sources import (
    SimpleEvent,
    icache_journal,
    ilist,
    imap,
    imap_journal,
    item_stream,
    long_stream,
    socket_lines,
    source_from,
    sql_changes,
    sql_rows,
    stream_of,
    stream_source_from,
    watch_files,
)


@dataclass
class Sale:
    item: str
    price: float


def lines(path: str) -> Iterator[str]:
    """Give the lines of a file."""
    with open(path) as file:
        yield from file


def databases(ctx: Context, sales: Stream[Sale]) -> None:
    """Rows are of the kind that is asked for."""
    assert_type(sql_rows("sqlite:///x", "SELECT 1"), Source[Any])
    assert_type(sql_rows("sqlite:///x", "SELECT :a", {"a": 1}, ("id", 0, 9, 4), kind=Sale), Source[Sale])
    assert_type(ctx.read(sql_rows("sqlite:///x", "SELECT 1", kind=Sale)).map(lambda sale: sale.item), Stream[str])
    assert_type(sql_changes("sqlite:///x", "sales", order_by="id"), StreamSource[Any])
    assert_type(
        sql_changes("sqlite:///x", "sales", "id", order_by="at", start="current", kind=Sale), StreamSource[Sale]
    )
    assert_type(sales.collect(to_sql("sqlite:///x", "sales", ["item"], "update", job="nightly")), None)
    assert_type(sales.collect(replacing(to_sql("sqlite:///x", "sales"))), None)
    to_sql("sqlite:///x", "sales", on_conflict="merge")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def elsewhere(ctx: Context, sales: Stream[Sale]) -> None:
    """Collections of other storages are typed as those of the context."""
    assert_type(ilist("names", storage="redis://host/0"), Source[Any])
    assert_type(imap("m", storage=Path("data"), projection=lambda entry: len(entry.key)), Source[int])
    assert_type(sales.collect(to_imap("m", lambda sale: sale.item, lambda sale: 1, storage="x")), IStreamMap[str, int])
    assert_type(ctx.elsewhere("data"), Context)


def remaining(stock: int | None, sale: Sale) -> int | None:
    """Give what is left."""
    return (stock or 0) - 1 or None


def lower(entry: LiveEntry[str, int | None], sale: Sale) -> None:
    """Take the sale from the stock."""
    entry.set_value((entry.value or 0) - 1)


def updates(sales: Stream[Sale]) -> None:
    """Functions see the value, or the entry, and the item."""
    assert_type(sales.collect(updating_imap("stock", lambda sale: sale.item, remaining)), IStreamMap[str, int])
    assert_type(sales.collect(processing_imap("stock", lambda sale: sale.item, lower)), IStreamMap[str, int])


def sockets(ctx: Context, sales: Stream[Sale]) -> None:
    """A server sends and takes lines; functions see the items."""
    assert_type(ctx.read(socket_lines("h", 1)), Stream[str])
    assert_type(socket_lines("h", 1, durable=True), StreamSource[str])
    assert_type(socket_lines("h", 1, durable="lines"), StreamSource[str])
    assert_type(sales.collect(to_socket("h", 1, lambda sale: sale.item)), None)
    sink: Reducer[Sale, None] = to_socket("h", 1)
    assert_type(sales.collect(sink), None)


def journals_and_files() -> None:
    """Events, or what a projection makes of them."""
    assert_type(imap_journal("m"), StreamSource[JournalEvent])
    assert_type(imap_journal("m", "current", lambda event: event.offset > 3, events="all"), StreamSource[JournalEvent])
    assert_type(imap_journal("m", projection=lambda event: event.offset), StreamSource[int])
    assert_type(icache_journal("m"), StreamSource[JournalEvent])
    assert_type(icache_journal("m", datetime.now(UTC), projection=lambda event: "x"), StreamSource[str])
    assert_type(watch_files("logs", "*.log"), StreamSource[str])
    assert_type(watch_files("logs", format="json"), StreamSource[Any])


def functions(ctx: Context) -> None:
    """What functions give is what a source gives."""
    assert_type(source_from(["a.txt"], lines), Source[str])
    assert_type(ctx.read(source_from(lambda parallelism: range(parallelism), lambda part: [part * 2])), Stream[int])
    feed = stream_source_from(lambda: {"a": 0}, lambda offsets, most: offsets, lambda name, start, stop: [name])
    assert_type(feed, StreamSource[str])


def by_the_clock() -> None:
    """Events, what a function makes of them, numbers, or what is given."""
    assert_type(item_stream(10), StreamSource[SimpleEvent])
    assert_type(item_stream(10, lambda timestamp, sequence: str(sequence)), StreamSource[str])
    assert_type(long_stream(10, partitions=2), StreamSource[int])
    assert_type(stream_of(["a"], 2), StreamSource[str])
