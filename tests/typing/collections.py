"""Types of collections and reducers, from the user's side: two type checkers read this file, nothing runs it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, assert_type

import dstream as ds
from collectors import counting
from dstream import Entry, IStreamCache, IStreamList, IStreamMap, JournalEvent, Stream
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


def written_elsewhere(words: Stream[str]) -> None:
    """Files are their paths; what has no place gives None."""
    assert_type(words.collect(to_files("out", to_string=lambda word: word.upper())), list[str])
    assert_type(words.collect(to_files("out", format="json", compression="gz")), list[str])
    assert_type(words.collect(replacing(to_files("out"))), list[str])
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
    assert_type(ages.journal(since=0), Iterator[JournalEvent])
    assert_type(ages.vacuum(), int)
    assert_type(ages.to_df(), Any)
    print(ages.options, ages.items(), ages.entry_set(), ages.to_arrow())
    ages.update({"a": 1}, b=2)
    ages.put_all([("a", 1)])
    ages.head(3)
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
    assert_type(tokens.journal(since=0), Iterator[JournalEvent])
    assert_type(tokens.vacuum(), int)
    assert_type(tokens.to_df(), Any)
    print(tokens.options, tokens.items(), tokens.entry_set(), tokens.to_arrow())
    tokens.update({"a": 1}, b=2)
    tokens.put_all([("a", 1)])
    tokens.head(3)
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
    print(names.options, names.to_arrow())
    names.add(0, "a")
    names.append("a")
    names.extend(["a"])
    names.insert(0, "a")
    names.remove("a")
    names.reverse()
    names.sort(key=lambda name: name.lower(), reverse=True)
    names.head(3)
    names.compact()
    names.clear()
    names.destroy()
