"""Each sink of the table of connectors with a small target: how often each item is there."""

from __future__ import annotations

import collections
import operator
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dstream as ds
import reducers
from collectors import counting
from tests.servers.kafka_broker import Broker
from tests.servers.topics import Topic

__all__ = ["ITEMS", "KEPT", "Given", "Kept"]

ITEMS = ["a", "b", "c", "d"]


@dataclass
class Given:
    """What a target may need.

    Attributes:
        lines: gets what comes to `server`, and what is logged.
        broker: starts one.
        passed: gets the items that tasks have taken.
    """

    context: ds.Context
    folder: Path
    lines: list[str]
    server: tuple[str, int]
    broker: Callable[[], Broker]
    passed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Kept:
    """A sink and its target.

    Attributes:
        make: makes the sink; takes `job`, if that can have one.
        content: gives all items that are there, one that came twice two times.
        clear: takes them away; None: nobody can.
        is_visible: an item that comes twice is there twice.
        item: makes what the sink takes.
    """

    make: Callable[..., Any]
    content: Callable[[], list[str]]
    clear: Callable[[], object] | None = None
    is_visible: bool = True
    item: Callable[[str], Any] = str


def _one(item: Any) -> int:
    return 1


def _counted(old: int | None, item: Any) -> int:
    return (old or 0) + 1


def _count_in(entry: Any, item: Any) -> None:
    entry.set_value(_counted(entry.value, item))


def _in(found: Any, make: Callable[..., Any], *, is_visible: bool = True) -> Kept:
    def content() -> list[str]:
        return [*collections.Counter(dict(found.items())).elements()] if hasattr(found, "items") else [*found]

    return Kept(make, content, found.clear, is_visible)


def _in_map(given: Given, name: str, *rest: Any, **more: Any) -> Kept:
    made = getattr(reducers, name)
    return _in(given.context.get_map("t"), lambda **job: made("t", str, *rest, **more, **job))


def _to_imap(given: Given) -> Kept:
    return _in_map(given, "to_imap", _one, operator.add, on_existing="merge")


def _updating_imap(given: Given) -> Kept:
    return _in_map(given, "updating_imap", _counted)


def _processing_imap(given: Given) -> Kept:
    return _in_map(given, "processing_imap", _count_in)


def _to_icache(given: Given) -> Kept:
    def make(**job: str) -> Any:
        return reducers.to_icache("t", str, _one, operator.add, on_existing="merge", **job)

    return _in(given.context.get_cache("t", ttl=900), make)


def _to_ilist(given: Given) -> Kept:
    return _in(given.context.get_list("t"), lambda **job: reducers.to_ilist("t", **job))


def _to_iset(given: Given) -> Kept:
    return _in(given.context.get_set("t"), lambda **job: reducers.to_iset("t", **job), is_visible=False)


def _replacing(given: Given) -> Kept:
    def make(**job: str) -> Any:
        return reducers.replacing(reducers.to_ilist("t", **job))

    return _in(given.context.get_list("t"), make, is_visible=False)


def _grouping_by_to_imap(given: Given) -> Kept:
    def make(**job: str) -> Any:
        return reducers.grouping_by_to_imap("t", str, counting(), **job)

    return _in(given.context.get_map("t"), make, is_visible=False)


def _grouping_by_to_icache(given: Given) -> Kept:
    def make(**job: str) -> Any:
        return reducers.grouping_by_to_icache("t", str, counting(), **job)

    return _in(given.context.get_cache("t", ttl=900), make, is_visible=False)


def _to_files(given: Given) -> Kept:
    folder = given.folder / "files"

    def files() -> list[Path]:
        return [path for path in folder.glob("[!_.]*") if path.is_file()]

    def clear() -> None:
        for path in files():
            path.unlink()

    def content() -> list[str]:
        return [line for path in files() for line in path.read_text().splitlines()]

    return Kept(lambda **job: reducers.to_files(str(folder), **job), content, clear)


def _to_file(given: Given) -> Kept:
    path = given.folder / "file.txt"

    def content() -> list[str]:
        return path.read_text().splitlines() if path.exists() else []

    return Kept(lambda **job: reducers.to_file(path, **job), content, path.unlink, is_visible=False)


def _to_sql(given: Given) -> Kept:
    path = given.folder / "t.db"

    def asked(query: str) -> list[str]:
        with closing(sqlite3.connect(path)) as connection, connection:
            return [row[0] for row in connection.execute(query)]

    asked("CREATE TABLE t (x TEXT)")
    url = f"sqlite:///{path}"
    return Kept(
        lambda **job: reducers.to_sql(url, "t", **job),
        lambda: asked("SELECT x FROM t"),
        lambda: asked("DELETE FROM t"),
        item=lambda text: (text,),
    )


def _to_kafka(given: Given) -> Kept:
    topic = Topic(given.broker().address)

    def content() -> list[str]:
        return [value.decode() for _, _, value in topic.content("read_committed")]

    return Kept(lambda **job: reducers.to_kafka(topic.name, topic.config, value=str, **job), content)


def _to_socket(given: Given) -> Kept:
    return Kept(lambda: reducers.to_socket(*given.server), lambda: given.lines)


def _to_logger(given: Given) -> Kept:
    return Kept(reducers.to_logger, lambda: given.lines)


def _to_nothing(given: Given) -> Kept:
    return Kept(reducers.to_nothing, lambda: given.passed)


def _sink_from(given: Given) -> Kept:
    path = given.folder / "lines.txt"

    def write(file: Any, item: str) -> None:
        file.write(f"{item}\n")

    def make() -> Any:
        return reducers.sink_from(lambda: path.open("a"), write, destroy=lambda file: file.close())

    return Kept(make, lambda: path.read_text().splitlines())


KEPT: dict[str, Callable[[Given], Kept]] = {
    name[1:]: make for name, make in list(globals().items()) if name.startswith("_") and hasattr(reducers, name[1:])
}
