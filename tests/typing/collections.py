"""Types of collections and reducers, from the user's side: checked by mypy, never run."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, assert_type

import dstream as ds
from collectors import counting
from dstream import Entry, IStreamCache, IStreamList, IStreamMap, Stream
from dstream.spi import Reducer
from reducers import grouping_by_to_imap, replacing, to_icache, to_ilist, to_imap


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
    assert_type(words.collect(replacing(to_imap("m", str.upper, len))), IStreamMap[str, int])
    assert_type(words.map(lambda word: (word, len(word))).collect(to_imap("m")), IStreamMap[str, int])
    assert_type(words.collect(counting_objects()), IStreamMap[object, int])
    assert_type(words.collect(to_ilist("l")), IStreamList[Any])


def written_again(ages: IStreamMap[str, int]) -> None:
    """The entries of a map are pairs."""
    assert_type(ages.stream().collect(to_imap("m")), IStreamMap[str, int])
    assert_type(ages.stream().collect(to_imap("m", merge=operator.add)), IStreamMap[str, int])


def counting_objects() -> Reducer[object, IStreamMap[object, int]]:
    """What takes any item takes words."""
    return to_imap("m", lambda item: item, lambda item: 1)
