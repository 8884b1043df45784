"""Types of collections and reducers, from the user's side: two type checkers read this file, nothing runs it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, assert_type

import pandas as pd

import dstream as ds
from collectors import counting
from dstream import (
    Entry,
    IStreamCache,
    IStreamCounter,
    IStreamList,
    IStreamMap,
    IStreamQueue,
    IStreamSet,
    JournalEvent,
    Predicate,
    Stream,
    where,
)
from dstream.spi import Reducer
from reducers import (
    grouping_by_to_icache,
    grouping_by_to_imap,
    replacing,
    sink_from,
    to_files,
    to_icache,
    to_ilist,
    to_imap,
    to_iset,
    to_kafka,
    to_logger,
    to_nothing,
)


def made(ctx: ds.Context) -> None:
    """Types that are given are those of the handle; without them anything goes."""
    assert_type(ctx.get_map("m", key_type=str, value_type=int), IStreamMap[str, int])
    assert_type(ctx.get_map("m"), IStreamMap[Any, Any])
    assert_type(ctx.get_list("l", value_type=str), IStreamList[str])
    assert_type(ctx.get_cache("c", key_type=str, value_type=float, ttl=1), IStreamCache[str, float])
    assert_type(ctx.get_set("s", value_type=str), IStreamSet[str])
    assert_type(ctx.get_set("s"), IStreamSet[Any])
    assert_type(ctx.get_counter("c"), IStreamCounter)
    assert_type(ctx.get_queue("q"), IStreamQueue[Any])


def used(ages: IStreamMap[str, int], names: IStreamList[str]) -> None:
    """A map is a dict, a list is a list."""
    assert_type(ages["Ada"], int)
    assert_type(ages.get("Ada"), int | None)
    assert_type(ages.put("Ada", 1), int | None)
    assert_type(iter(ages), Iterator[str])
    assert_type(ages.stream(), Stream[Entry[str, int]])
    assert_type(ages.stream().map(lambda entry: entry.value), Stream[int])
    assert_type(names[0], str)
    assert_type(names.stream(), Stream[str])


def conditions(words: Stream[str]) -> None:
    """What `where` makes is a condition, which takes any item."""
    assert_type(where("a") == 1, Predicate)
    assert_type(where("a") != None, Predicate)  # noqa: E711 - what a user may write
    assert_type((where("a") > 1) & ~where("b").is_none() | where("c").between(1, 2), Predicate)
    assert_type(where("a").is_in([1, 2]) | where("b").like("A%") | where("c").regex("A.*"), Predicate)
    assert_type(words.filter(where("this").like("A%")), Stream[str])
    assert_type((where("a") < 1)("word"), bool)


def written(words: Stream[str]) -> None:
    """A reducer gives the collection with the types of its keys and values."""
    assert_type(words.collect(to_imap("m", len, lambda word: word)), IStreamMap[int, str])
    assert_type(words.collect(to_imap("m", str.upper, len, operator.add)), IStreamMap[str, int])
    assert_type(words.collect(to_icache("c", str.upper, len)), IStreamCache[str, int])
    assert_type(words.collect(grouping_by_to_imap("m", len)), IStreamMap[int, list[str]])
    assert_type(words.collect(grouping_by_to_imap("m", len, counting())), IStreamMap[int, int])
    assert_type(words.collect(grouping_by_to_icache("c", len, counting())), IStreamCache[int, int])
    assert_type(words.collect(replacing(to_imap("m", str.upper, len))), IStreamMap[str, int])
    assert_type(words.map(lambda word: (word, len(word))).collect(to_imap("m")), IStreamMap[str, int])
    assert_type(words.collect(counting_objects()), IStreamMap[object, int])
    assert_type(words.collect(to_ilist("l")), IStreamList[str])
    assert_type(words.collect(to_iset("s")), IStreamSet[str])


def written_elsewhere(words: Stream[str]) -> None:
    """Files are their paths; what has no place gives None."""
    assert_type(words.collect(to_files("out", to_string=lambda word: word.upper())), list[str])
    assert_type(words.collect(to_files("out", format="json", compression="gz")), list[str])
    assert_type(words.collect(replacing(to_files("out"))), list[str])
    rows = words.map(lambda word: {"word": word})
    assert_type(rows.collect(to_files("out", format="csv", columns=["word"], partition_by="word")), list[str])
    assert_type(rows.collect(to_files("out", format="parquet", compression="zst", roll_at=(1 << 27, None))), list[str])
    assert_type(rows.collect(to_files("out", format="avro", partition_by={"n": lambda row: len(row)})), list[str])
    to_files("out", format="parquet", compression="bz2")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert_type(sink_from(dict[str, int], count_in), Reducer[str, None])
    words.collect(sink_from(list[str], list.append, lambda held: held.sort()))
    words.collect(to_logger(lambda word: word.upper()))
    words.collect(
        to_kafka("words", {"bootstrap.servers": "host:9092"}, key=lambda word: word, value=str.upper, job="nightly")
    )
    assert_type(words.collect(to_kafka("words", {}, headers=lambda word: {"n": word}, guarantee="at-least-once")), None)
    words.collect(to_nothing())


def count_in(counts: dict[str, int], word: str) -> None:
    """Count a word."""
    counts[word] = counts.get(word, 0) + 1


def written_again(ages: IStreamMap[str, int]) -> None:
    """The entries of a map are pairs; pyright does not see it, since `Entry` is a subclass of `tuple`."""
    assert_type(ages.stream().collect(to_imap("m")), IStreamMap[str, int])  # pyright: ignore[reportAssertTypeFailure]
    assert_type(ages.stream().collect(to_imap("m", merge=operator.add)), IStreamMap[str, int])  # pyright: ignore[reportAssertTypeFailure]


def counting_objects() -> Reducer[object, IStreamMap[object, int]]:
    """What takes any item takes words."""
    return to_imap("m", lambda item: item, lambda item: 1)


def ages_methods(ages: IStreamMap[str, int]) -> None:
    """Every method of `IStreamMap`."""
    assert_type(ages.name, str)
    assert_type(ages.size(), int)
    assert_type(ages.is_empty(), bool)
    assert_type(ages.location, str | None)
    assert_type(ages.key_type, Any)
    assert_type(ages.value_type, Any)
    assert_type(ages.get("a"), int | None)
    assert_type(ages.get("a", 0), int)
    assert_type(ages.get("a", "b"), int | str)
    assert_type(ages.get_all(["a"]), dict[str, int])
    assert_type(list(ages.keys()), list[str])
    assert_type(list(ages.key_set()), list[str])
    assert_type(list(ages.values()), list[int])
    assert_type(ages.copy(), dict[str, int])
    assert_type(ages.put("a", 1), int | None)
    assert_type(ages.put_if_absent("a", 1), int | None)
    assert_type(ages.setdefault("a", 1), int)
    assert_type(ages.compute("a", lambda key, old: (old or 0) + len(key)), int | None)
    assert_type(ages.compute_if_absent("a", len), int | None)
    assert_type(ages.compute_if_present("a", lambda key, old: old + len(key) or None), int | None)
    assert_type(ages.merge("a", 1, operator.add), int | None)
    assert_type(ages.replace("a", 1), int | None)
    assert_type(ages.replace("a", 1, 2), bool)
    assert_type(ages.remove("a"), int | None)
    assert_type(ages.remove("a", 1), bool)
    assert_type(ages.pop("a"), int)
    assert_type(ages.pop("a", None), int | None)
    assert_type(ages.popitem(), Entry[str, int])
    assert_type(ages.execute_on_key("a", lambda entry: entry.value), int | None)
    assert_type(ages.execute_on_entries(lambda entry: entry.key, lambda entry: entry.value > 1), dict[str, str])
    assert_type(ages.stream(), Stream[Entry[str, int]])
    assert_type(ages.stream(lambda entry: entry.value > 1), Stream[Entry[str, int]])
    assert_type(ages.stream(projection=lambda entry: entry.key), Stream[str])
    assert_type(ages.stream(where("this") > 1), Stream[Entry[str, int]])
    assert_type(ages.select(where("this") == 1), list[int])
    assert_type(ages.select(lambda entry: entry.value > 1, lambda entry: entry.key), list[str])
    assert_type(ages.journal(since=0), Iterator[JournalEvent])
    assert_type(ages.watch(since=0, every=1, timeout=2.5), Iterator[JournalEvent])
    assert_type(ages.vacuum(), int)
    assert_type(ages.to_df(), Any)
    assert_type(ages.to_pandas(), pd.DataFrame)
    print(ages.options, ages.items(), ages.entry_set(), ages.to_arrow())
    ages.update({"a": 1}, b=2)
    ages.put_all([("a", 1)])
    ages.replace_all(lambda key, value: value + len(key))
    ages.add_index("this")
    ages.add_index("this", kind="sorted")
    ages.head(3)
    ages.show(3)
    ages.compact()
    ages.clear()
    ages.destroy()


def tokens_methods(tokens: IStreamCache[str, int]) -> None:
    """Every method of `IStreamCache`."""
    assert_type(tokens.name, str)
    assert_type(tokens.size(), int)
    assert_type(tokens.is_empty(), bool)
    assert_type(tokens.location, str | None)
    assert_type(tokens.key_type, Any)
    assert_type(tokens.value_type, Any)
    assert_type(tokens.get("a"), int | None)
    assert_type(tokens.get("a", 0), int)
    assert_type(tokens.get("a", "b"), int | str)
    assert_type(tokens.get_all(["a"]), dict[str, int])
    assert_type(list(tokens.keys()), list[str])
    assert_type(list(tokens.key_set()), list[str])
    assert_type(list(tokens.values()), list[int])
    assert_type(tokens.copy(), dict[str, int])
    assert_type(tokens.put("a", 1), int | None)
    assert_type(tokens.put_if_absent("a", 1), int | None)
    assert_type(tokens.setdefault("a", 1), int)
    assert_type(tokens.compute("a", lambda key, old: (old or 0) + len(key)), int | None)
    assert_type(tokens.compute_if_absent("a", len), int | None)
    assert_type(tokens.compute_if_present("a", lambda key, old: old + len(key) or None), int | None)
    assert_type(tokens.merge("a", 1, operator.add), int | None)
    assert_type(tokens.replace("a", 1), int | None)
    assert_type(tokens.replace("a", 1, 2), bool)
    assert_type(tokens.remove("a"), int | None)
    assert_type(tokens.remove("a", 1), bool)
    assert_type(tokens.pop("a"), int)
    assert_type(tokens.pop("a", None), int | None)
    assert_type(tokens.popitem(), Entry[str, int])
    assert_type(tokens.execute_on_key("a", lambda entry: entry.value), int | None)
    assert_type(tokens.execute_on_entries(lambda entry: entry.key, lambda entry: entry.value > 1), dict[str, str])
    assert_type(tokens.stream(), Stream[Entry[str, int]])
    assert_type(tokens.stream(lambda entry: entry.value > 1), Stream[Entry[str, int]])
    assert_type(tokens.stream(projection=lambda entry: entry.key), Stream[str])
    assert_type(tokens.stream(where("this") > 1), Stream[Entry[str, int]])
    assert_type(tokens.select(where("this") == 1), list[int])
    assert_type(tokens.select(lambda entry: entry.value > 1, lambda entry: entry.key), list[str])
    assert_type(tokens.journal(since=0), Iterator[JournalEvent])
    assert_type(tokens.watch(since=0, every=1, timeout=2.5), Iterator[JournalEvent])
    assert_type(tokens.vacuum(), int)
    assert_type(tokens.to_df(), Any)
    assert_type(tokens.to_pandas(), pd.DataFrame)
    print(tokens.options, tokens.items(), tokens.entry_set(), tokens.to_arrow())
    tokens.update({"a": 1}, b=2)
    tokens.put_all([("a", 1)])
    tokens.replace_all(lambda key, value: value + len(key))
    tokens.add_index("this")
    tokens.add_index("this", kind="sorted")
    tokens.head(3)
    tokens.show(3)
    tokens.compact()
    tokens.clear()
    tokens.destroy()
    assert_type(tokens.purge(), int)


def names_methods(names: IStreamList[str]) -> None:
    """Every method of `IStreamList`."""
    assert_type(names.name, str)
    assert_type(names.size(), int)
    assert_type(names.is_empty(), bool)
    assert_type(names.location, str | None)
    assert_type(names.value_type, Any)
    assert_type(names.get(0), str)
    assert_type(names[1:], list[str])
    assert_type(names.index("a"), int)
    assert_type(names.count("a"), int)
    assert_type(names.copy(), list[str])
    assert_type(names.pop(), str)
    assert_type(names.add("a"), bool)
    assert_type(names.add_all(["a"]), bool)
    assert_type(names.set(0, "a"), str)
    assert_type(names.stream(), Stream[str])
    assert_type(names.parallel_stream(), Stream[str])
    assert_type(names.vacuum(), int)
    assert_type(names.to_df(), Any)
    assert_type(names.to_pandas(), pd.DataFrame)
    print(names.options, names.to_arrow())
    names.add(0, "a")
    names.append("a")
    names.extend(["a"])
    names.insert(0, "a")
    names.remove("a")
    names.reverse()
    names.sort(key=lambda name: name.lower(), reverse=True)
    names.head(3)
    names.show(3)
    names.compact()
    names.clear()
    names.destroy()


def seen_methods(seen: IStreamSet[str]) -> None:
    """Every method of `IStreamSet`, which is a set."""
    assert_type(seen.name, str)
    assert_type(seen.size(), int)
    assert_type(seen.is_empty(), bool)
    assert_type(seen.location, str | None)
    assert_type(seen.value_type, Any)
    assert_type(seen.copy(), set[str])
    assert_type(seen.pop(), str)
    assert_type(seen.isdisjoint({"a"}), bool)
    assert_type(seen.stream(), Stream[str])
    assert_type(seen.vacuum(), int)
    assert_type(seen.to_df(), Any)
    assert_type(seen.to_pandas(), pd.DataFrame)
    assert_type(iter(seen), Iterator[str])
    print(seen.options, seen.to_arrow(), seen | {"a"})
    seen.add("a")
    seen.update(["a"])
    seen.discard("a")
    seen.remove("a")
    seen.head(3)
    seen.show(3)
    seen.compact()
    seen.clear()
    seen.destroy()


def visits_methods(visits: IStreamCounter) -> None:
    """Every method of `IStreamCounter`."""
    assert_type(visits.name, str)
    assert_type(visits.add(5), int)
    assert_type(visits.get(), int)
    assert_type(visits.size(), int)
    assert_type(visits.is_empty(), bool)
    assert_type(visits.location, str | None)
    assert_type(visits.value_type, Any)
    assert_type(visits.vacuum(), int)
    print(visits.options)
    visits.head(3)
    visits.show(3)
    visits.compact()
    visits.destroy()


def refused_by_counters(visits: IStreamCounter) -> None:
    """A number is no table: what follows is never reached."""
    visits.to_arrow()


def refused_by_counters_too(visits: IStreamCounter) -> None:
    """The same."""
    visits.to_df()


def refused_by_counters_as_well(visits: IStreamCounter) -> None:
    """The same."""
    visits.to_pandas()


def jobs_methods(jobs: IStreamQueue[str]) -> None:
    """Every method of `IStreamQueue`."""
    assert_type(jobs.name, str)
    assert_type(jobs.take(), str)
    assert_type(jobs.take(timeout=1.5), str)
    with jobs.lease(60, timeout=0) as job:
        assert_type(job, str)
    assert_type(jobs.size(), int)
    assert_type(jobs.is_empty(), bool)
    assert_type(jobs.location, str | None)
    assert_type(jobs.value_type, None)
    assert_type(jobs.vacuum(), int)
    print(jobs.options)
    jobs.put("a")
    jobs.put_all(["a"])
    jobs.head(3)
    jobs.show(3)
    jobs.compact()
    jobs.clear()
    jobs.destroy()


def refused_by_queues(jobs: IStreamQueue[str]) -> None:
    """A queue is no table."""
    jobs.to_arrow()


def refused_by_queues_too(jobs: IStreamQueue[str]) -> None:
    """The same."""
    jobs.to_df()


def refused_by_queues_as_well(jobs: IStreamQueue[str]) -> None:
    """The same."""
    jobs.to_pandas()
