"""A small system for each source of the table of connectors: what it holds, and how more comes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import dstream as ds
import sources
from tests.servers.kafka_broker import Broker
from tests.servers.topics import Topic

__all__ = ["HELD", "Held", "are_held"]


@dataclass(frozen=True)
class Held:
    """What a source reads in a test.

    Attributes:
        source: two tasks have something to read, where it is distributed.
        first: the items that are there, in any order; None: the whole numbers from 0 on, the even ones in one partition
            and the others in another, of which there are always more.
        more: lets `then` come, given a context; a source without an end reads that when it goes on.
        alone: the same where one task reads all, if that depends on arguments.
    """

    source: Any
    first: list[Any] | None
    more: Callable[[ds.Context], object] = lambda ctx: None
    then: tuple[Any, ...] = ()
    alone: Any = None


def _folder(folder: Path, write: Callable[[Path, str], object]) -> str:
    for name in ("a", "b"):
        write(folder / name, name)
    return str(folder)


def _write_avro(path: Path, text: str) -> None:
    schema = {"type": "record", "name": "row", "fields": [{"name": "x", "type": "string"}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"x": text}])


def _text_files(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.text_files(_folder(folder, lambda path, text: path.write_text(text))), ["a", "b"])


def _csv_rows(folder: Path, ctx: ds.Context) -> Held:
    path = _folder(folder, lambda path, text: path.write_text(f"x\n{text}\n"))
    return Held(sources.csv_rows(path), [{"x": "a"}, {"x": "b"}])


def _json_lines(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.json_lines(_folder(folder, lambda path, text: path.write_text(json.dumps(text)))), ["a", "b"])


def _parquet_rows(folder: Path, ctx: ds.Context) -> Held:
    path = _folder(folder, lambda path, text: pq.write_table(pa.table({"x": [text]}), path))
    return Held(sources.parquet_rows(path), [{"x": "a"}, {"x": "b"}])


def _avro_records(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.avro_records(_folder(folder, _write_avro)), [{"x": "a"}, {"x": "b"}])


def _files(folder: Path, ctx: ds.Context) -> Held:
    path = _folder(folder, lambda path, text: path.write_text(text))
    return Held(sources.files(path), [(f"{path}/a", b"a"), (f"{path}/b", b"b")])


def _watch_files(folder: Path, ctx: ds.Context) -> Held:
    path = _folder(folder, lambda path, text: path.write_text(f"{text}\n"))
    return Held(sources.watch_files(path), ["a", "b"], lambda ctx: (folder / "c").write_text("c\n"), ("c",))


def _imap(folder: Path, ctx: ds.Context) -> Held:
    pairs = {number: number for number in range(20_000)}
    ctx.get_map("m").update(pairs)
    return Held(sources.imap("m"), [*pairs.items()])


def _icache(folder: Path, ctx: ds.Context) -> Held:
    pairs = {number: number for number in range(20_000)}
    ctx.get_cache("c", ttl=900).update(pairs)
    return Held(sources.icache("c"), [*pairs.items()])


def _ilist(folder: Path, ctx: ds.Context) -> Held:
    ctx.get_list("l").extend(range(20_000))
    return Held(sources.ilist("l"), [*range(20_000)])


def _imap_journal(folder: Path, ctx: ds.Context) -> Held:
    ages = ctx.get_map("ages", journal=True)
    ages["a"] = 1
    source = sources.imap_journal("ages", projection=lambda event: event.key)
    return Held(source, ["a"], lambda ctx: ctx.get_map("ages").update(b=2), ("b",))


def _icache_journal(folder: Path, ctx: ds.Context) -> Held:
    ages = ctx.get_cache("ages", ttl=900, journal=True)
    ages["a"] = 1
    source = sources.icache_journal("ages", projection=lambda event: event.key)
    return Held(source, ["a"], lambda ctx: ctx.get_cache("ages").update(b=2), ("b",))


def _table(folder: Path, *numbers: int) -> str:
    with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(each,) for each in numbers])
    return f"sqlite:///{folder / 't.db'}"


def _sql_rows(folder: Path, ctx: ds.Context) -> Held:
    url, query = _table(folder, 1, 2), "SELECT id FROM t"
    several = sources.sql_rows(url, query, partition_on=("id", 1, 3, 2))
    return Held(several, [(1,), (2,)], alone=sources.sql_rows(url, query))


def _sql_changes(folder: Path, ctx: ds.Context) -> Held:
    source = sources.sql_changes(_table(folder, 1), "t", order_by="id")
    return Held(source, [(1,)], lambda ctx: _table(folder, 2), ((2,),))


def _kafka(folder: Path, ctx: ds.Context, broker: Broker) -> Held:
    topic = Topic(broker.address, 2)
    for partition, value in enumerate([b"a", b"b"]):
        topic.send([value], partition=partition)
    source = sources.kafka(topic.name, topic.config, projection=lambda record: record.value.decode())
    return Held(source, ["a", "b"], lambda ctx: topic.send([b"c"], partition=1), ("c",))


def _items(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.items("a", "b"), ["a", "b"])


def _item_stream(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.item_stream(2000, lambda timestamp, sequence: sequence, partitions=2), None)


def _long_stream(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.long_stream(2000, partitions=2), None)


def _stream_of(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.stream_of(range(20_000), partitions=2), None)


def _source_from(folder: Path, ctx: ds.Context) -> Held:
    return Held(sources.source_from(["a", "b"], lambda part: [part]), ["a", "b"])


def _stream_source_from(folder: Path, ctx: ds.Context) -> Held:
    path = folder / "feed.json"
    path.write_text('{"x": ["a"], "y": ["b"]}')

    def reach(offsets: Any, most: Any) -> dict[str, int]:
        return {name: len(some) for name, some in json.loads(path.read_text()).items()}

    def read(name: str, start: Any, stop: Any) -> list[str]:
        found: list[str] = json.loads(path.read_text())[name][start or 0 : stop]
        return found

    source = sources.stream_source_from(lambda: {"x": 0, "y": 0}, reach, read)
    return Held(source, ["a", "b"], lambda ctx: path.write_text('{"x": ["a", "c"], "y": ["b"]}'), ("c",))


HELD: dict[str, Callable[..., Held]] = {
    name[1:]: make for name, make in list(globals().items()) if name.startswith("_") and hasattr(sources, name[1:])
}


def are_held(held: Held, items: list[Any], then: tuple[Any, ...] = ()) -> bool:
    """Whether these are the items that are there, and those that come then, each once, in any order."""
    if held.first is None:
        both = [sorted(item for item in items if item % 2 == rest) for rest in (0, 1)]
        return len(items) > 0 and all(some == [*range(rest, 2 * len(some), 2)] for rest, some in enumerate(both))
    return sorted(map(repr, map(_plain, items))) == sorted(map(repr, map(_plain, [*held.first, *then])))


def _plain(item: Any) -> Any:
    return tuple(item) if isinstance(item, tuple) else item
