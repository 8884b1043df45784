"""The types that flow through chains, seen from the user's side; two type checkers read this file, nothing runs it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, assert_type

import pandas as pd
import pyarrow as pa

import dstream as ds
from collectors import (
    averaging,
    counting,
    filtering,
    grouping_by,
    joining,
    mapping,
    max_by,
    partitioning_by,
    summing_int,
    teeing,
    to_list,
    to_map,
    to_set,
)
from dstream import DoubleStream, Entry, IntStream, LongStream, Optional, Stream
from dstream.explain.drawing import Drawing
from dstream.spi import AggregateOperation
from dstream.stream import StreamBuilder
from dstream.stream.summaries import Description, Histogram
from dstream.values.time import KeyedWindowResult, WindowResult
from dstream.windows import session, tumbling
from reducers import to_ilist
from sources import csv_rows, text_files


def lazy_operations(words: Stream[str]) -> None:
    """Each lazy operation knows the type of its items, through lambdas too."""
    assert_type(words.map(len), Stream[int])
    assert_type(words.map(lambda word: word.upper()), Stream[str])
    assert_type(words.map(lambda word: (word, len(word))), Stream[tuple[str, int]])
    assert_type(words.filter(lambda word: word.isalpha()), Stream[str])
    assert_type(words.flat_map(lambda word: list(word)), Stream[str])
    assert_type(words.flat_map(lambda word: [1.5]), Stream[float])
    assert_type(words.map_to_int(len), IntStream)
    assert_type(words.map_to_long(len), LongStream)
    assert_type(words.map_to_double(float), DoubleStream)
    assert_type(words.distinct(key=str.lower), Stream[str])
    assert_type(words.sorted(key=len, reverse=True), Stream[str])
    assert_type(words.limit(3).skip(1).take_while(bool).drop_while(bool).unordered(), Stream[str])
    assert_type(words.peek(print).parallel(4).sequential(), Stream[str])
    assert_type(words + words, Stream[str])
    assert_type(Stream.concat(words, words), Stream[str])
    assert_type(Stream.concat(words, words, words), Stream[str])
    assert_type(words.union(words, words), Stream[str])


def ends(words: Stream[str], pairs: Stream[tuple[str, int]], entries: Stream[Entry[str, int]]) -> None:
    """Groups have the keys that functions give; dicts, the parts of pairs."""
    assert_type(words.to_set(), set[str])
    assert_type(words.group_by(lambda word: len(word)), dict[int, list[str]])
    assert_type(words.count_by(lambda word: word[0]), dict[str, int])
    assert_type(pairs.to_dict(), dict[str, int])
    assert_type(entries.to_dict(), dict[str, int])
    assert_type(pairs.to_map(), dict[str, int])
    assert_type(entries.to_map(merge=max), dict[str, int])
    assert_type(words.to_map(lambda word: len(word), lambda word: word.upper(), max), dict[int, str])
    words.to_dict()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert_type(words.map(lambda word: word).describe(), Description)
    assert_type(words.describe(), Description)
    assert_type(words.histogram([0, 1.5]), Histogram)


def of_entries(
    crews: Stream[Entry[str, int]], pairs: Stream[tuple[str, list[int]]], most: AggregateOperation[tuple[int], Any, str]
) -> None:
    """What is done by key gives entries again, for entries and for pairs."""
    assert_type(crews.keys(), Stream[str])
    assert_type(pairs.values(), Stream[list[int]])
    assert_type(crews.swap(), Stream[Entry[int, str]])
    assert_type(crews.map_values(lambda crew: crew / 2), Stream[Entry[str, float]])
    assert_type(pairs.filter_values(lambda crew: len(crew) > 1), Stream[Entry[str, list[int]]])
    assert_type(pairs.flat_map_values(lambda crew: crew), Stream[Entry[str, int]])
    assert_type(crews.reduce_by_key(lambda left, right: left + right), Stream[Entry[str, int]])
    ones = Stream.of("whale").map(lambda word: (word, 1))
    assert_type(ones.reduce_by_key(lambda left, right: left + right), Stream[Entry[str, int]])
    assert_type(crews.aggregate_by_key(averaging()), Stream[Entry[str, float]])
    assert_type(crews.aggregate_by_key(most), Stream[Entry[str, str]])
    assert_type(crews.group_by_key(), Stream[Entry[str, list[int]]])
    assert_type(pairs.count_by_key(), Stream[Entry[str, int]])
    assert_type(crews.top_by_key(2, key=lambda crew: -crew), Stream[Entry[str, list[int]]])


def of_windows(sales: Stream[tuple[str, int]], most: AggregateOperation[tuple[tuple[str, int]], Any, str]) -> None:
    """Results have the key if there is one; lambdas know the items."""
    of_all = sales.aggregate_by_window(tumbling(10), counting(), timestamp=lambda sale: sale[1])
    assert_type(of_all, Stream[WindowResult[int]])
    by_shop = sales.aggregate_by_window(
        session(timedelta(hours=1)),
        averaging(lambda sale: sale[1]),
        timestamp=lambda sale: sale[1],
        key=lambda sale: sale[0],
    )
    assert_type(by_shop, Stream[KeyedWindowResult[str, float]])
    assert_type(sales.aggregate_by_window(tumbling(1), most, timestamp=lambda sale: sale[1]), Stream[WindowResult[str]])


def of_two_streams(
    words: Stream[str],
    ints: IntStream,
    crews: Stream[Entry[str, int]],
    seas: dict[str, float],
    ports: list[tuple[str, bytes]],
) -> None:
    """Items are matched with those of a stream, a dict or a list."""
    assert_type(words.zip(ints), Stream[tuple[str, int]])
    assert_type(ints.zip(["a", "b"], strict=True), Stream[tuple[int, str]])
    assert_type(words.zip_longest(ints), Stream[tuple[str | None, int | None]])
    assert_type(words.zip_longest(ints, 0), Stream[tuple[str | int, int]])
    assert_type(words.interleave(ints), Stream[str | int])
    assert_type(words.cross(range(3)), Stream[tuple[str, int]])
    assert_type(words.intersection(["a"]), Stream[str])
    assert_type(words.subtract(words), Stream[str])
    assert_type(ints.subtract([1]), IntStream)
    assert_type(crews.semi_join(seas), Stream[Entry[str, int]])
    assert_type(words.anti_join(ints, on=(lambda word: len(word), lambda n: n + 1)), Stream[str])
    assert_type(words.semi_join(["a"], on=lambda word: word.lower()), Stream[str])
    assert_type(crews.join(seas), Stream[Entry[str, tuple[int, float]]])
    assert_type(crews.join(seas, how="left"), Stream[Entry[str, tuple[int, float | None]]])
    assert_type(crews.join(ports), Stream[Entry[str, tuple[int, bytes]]])
    assert_type(
        crews.asof_join(ints, on=(lambda crew: crew.value, lambda n: n)), Stream[tuple[Entry[str, int], int | None]]
    )
    assert_type(words.asof_join(words, on=len, direction="nearest", tolerance=2), Stream[tuple[str, str | None]])


def kept_and_tables(words: Stream[str], ints: IntStream, longs: LongStream, doubles: DoubleStream) -> None:
    """A stream that is kept stays what it is; tables have the types of their libraries."""
    assert_type(words.cache(), Stream[str])
    assert_type(ints.cache(), IntStream)
    assert_type(longs.cache(), LongStream)
    assert_type(doubles.cache(), DoubleStream)
    assert_type([ints.to_arrow(), longs.to_arrow(), doubles.to_arrow()], list[pa.Table])
    assert_type([ints.to_pandas(), longs.to_pandas(), doubles.to_pandas()], list[pd.DataFrame])
    assert_type([ints.to_df(), longs.to_df(), doubles.to_df()], list[Any])
    assert_type(words.to_arrow(), pa.Table)
    assert_type(words.to_pandas(), pd.DataFrame)
    assert_type(words.to_df(), Any)


def every_lazy_operation(words: Stream[str]) -> None:
    """The operations that the chains above leave out."""
    assert_type(words.map_to_obj(len), Stream[int])
    assert_type(words.flat_map_to_int(lambda word: [len(word)]), IntStream)
    assert_type(words.flat_map_to_long(lambda word: [len(word)]), LongStream)
    assert_type(words.flat_map_to_double(lambda word: [len(word) / 2]), DoubleStream)
    assert_type(words.map_multi_to_int(lambda word, emit: emit(len(word))), IntStream)
    assert_type(words.map_multi_to_long(lambda word, emit: emit(len(word))), LongStream)
    assert_type(words.map_multi_to_double(lambda word, emit: emit(0.5)), DoubleStream)
    assert_type(words.skip(1), Stream[str])
    assert_type(words.take_while(lambda word: word.isalpha()), Stream[str])
    assert_type(words.drop_while(lambda word: word.isalpha()), Stream[str])
    assert_type(words.unordered(), Stream[str])
    assert_type(words.parallel(), Stream[str])
    assert_type(words.sequential(), Stream[str])
    assert_type(words.is_parallel(), bool)
    assert_type(words.configure({"spark.sql.shuffle.partitions": "4"}), Stream[str])
    assert_type(words.on_close(print), Stream[str])


def shorthands(words: Stream[str], pairs: Stream[tuple[str, int]], entries: Stream[ds.Entry[str, int]]) -> None:
    """Parts of items are typed where Python can say it."""
    lists: Stream[list[int]] = words.map(lambda word: [len(word)])
    assert_type(lists.flatten(), Stream[int])
    assert_type(words.flatten(), Stream[str])
    assert_type(words.map(lambda word: [word] if word else None).flatten(), Stream[str])
    assert_type(words.pluck("name"), Stream[Any])
    assert_type(pairs.starmap(lambda word, n: word * n), Stream[str])
    assert_type(entries.starmap(lambda word, n: n), Stream[int])
    assert_type(words.map(lambda word: (word, 1, 1.5)).starmap(lambda a, b, c: c), Stream[float])
    assert_type(words.top(3, key=len), Stream[str])
    assert_type(words.union(words), Stream[str])
    assert_type(words.apply(lambda some: some.map(len)), Stream[int])
    assert_type(words.apply(lambda some: some.map_to_int(len)), IntStream)
    assert_type(words.key_by(len), Stream[ds.Entry[int, str]])
    assert_type(words.partition_by(3, key=len), Stream[str])


def joined(entries: Stream[ds.Entry[str, int]], others: Stream[tuple[str, bytes]], words: Stream[str]) -> None:
    """`how` says which side may be missing; the key comes from the entries, or from the functions."""
    assert_type(entries.join(others), Stream[ds.Entry[str, tuple[int, bytes]]])
    assert_type(entries.join(others, how="left"), Stream[ds.Entry[str, tuple[int, bytes | None]]])
    assert_type(entries.join(others, how="right"), Stream[ds.Entry[str, tuple[int | None, bytes]]])
    assert_type(entries.join(others, how="full"), Stream[ds.Entry[str, tuple[int | None, bytes | None]]])
    assert_type(words.join(words, on=len), Stream[ds.Entry[int, tuple[str, str]]])
    assert_type(words.join(words, on=len, how="left"), Stream[ds.Entry[int, tuple[str, str | None]]])
    numbers: Stream[int] = words.map(len)
    by_both = words.join(numbers, on=(len, lambda n: n), how="full")
    assert_type(by_both, Stream[ds.Entry[int, tuple[str | None, int | None]]])
    assert_type(words.join(numbers, on=(len, abs)).map(lambda e: e.value[0].upper()), Stream[str])
    assert_type(words.key_by(len).join(numbers.key_by(abs)), Stream[ds.Entry[int, tuple[str, int]]])
    assert_type(entries.cogroup(others), Stream[ds.Entry[str, tuple[list[int], list[bytes]]]])
    assert_type(words.cogroup(words, on=len), Stream[ds.Entry[int, tuple[list[str], list[str]]]])
    assert_type(words.cogroup(numbers, on=(len, lambda n: n)), Stream[ds.Entry[int, tuple[list[str], list[int]]]])


def emitted(word: str, emit: Callable[[int], None]) -> None:
    """What a function emits decides, where it says so."""
    emit(len(word))


def several_for_one(words: Stream[str]) -> None:
    """`map_multi` takes the type from the function."""
    assert_type(words.map_multi(emitted), Stream[int])


def terminal_operations(words: Stream[str]) -> None:
    """Each terminal operation knows the type of its result."""
    assert_type(words.to_list(), list[str])
    assert_type(words.to_array(tuple), tuple[str, ...])
    assert_type(words.count(), int)
    assert_type(words.find_first(), Optional[str])
    assert_type(words.find_first().map(len).or_else(0), int)
    assert_type(words.min(key=len), Optional[str])
    assert_type(words.reduce(operator.add), Optional[str])
    assert_type(words.reduce("", operator.add), str)
    assert_type(words.reduce(0, lambda total, word: total + len(word), operator.add), int)
    assert_type(words.any_match(str.isalpha), bool)
    assert_type(iter(words), Iterator[str])
    assert_type(words.partitions(), list[Iterator[str]])
    assert_type(words.iterator(), Iterator[str])
    assert_type(words.find_any(), Optional[str])
    assert_type(words.first(), Optional[str])
    assert_type(words.last(), Optional[str])
    assert_type(words.max(), Optional[str])
    assert_type(words.all_match(lambda word: word.isalpha()), bool)
    assert_type(words.none_match(lambda word: word.isalpha()), bool)
    assert_type(words.to_array(), list[str])
    words.for_each(print)
    words.for_each_ordered(lambda word: print(word.upper()))
    words.for_each_partition(lambda some: sum(len(word) for word in some))
    words.close()


def collected(words: Stream[str]) -> None:
    """A collector gives the type of the result, nested ones too."""
    assert_type(words.collect(to_list()), list[str])
    assert_type(words.collect(to_set()), set[str])
    assert_type(words.collect(counting()), int)
    assert_type(words.collect(joining(", ")), str)
    assert_type(words.collect(grouping_by(len)), dict[int, list[str]])
    assert_type(words.collect(grouping_by(len, counting())), dict[int, int])
    assert_type(words.collect(grouping_by(len, mapping(str.upper, counting()))), dict[int, int])
    assert_type(words.collect(partitioning_by(str.isalpha, counting())), dict[bool, int])
    assert_type(words.collect(to_map(len, str.upper, operator.add)), dict[int, str])
    assert_type(words.collect(summing_int(len)), int)
    assert_type(words.collect(averaging(len)), float)
    assert_type(words.collect(max_by(len)), Optional[str])
    assert_type(words.collect(filtering(str.isalpha, counting())), int)
    assert_type(words.collect(teeing(counting(), joining(), lambda n, text: (n, text))), tuple[int, str])
    assert_type(words.collect(list[str], list.append, list.extend), list[str])


def getting_a_stream(ctx: ds.Context) -> None:
    """Factories and sources carry the type of their items."""
    assert_type(ctx.stream([1, 2]), Stream[int])
    assert_type(ctx.read(text_files("*.txt")), Stream[str])
    assert_type(ctx.read(csv_rows("*.csv")).map(lambda row: row["name"]).count(), int)
    assert_type(Stream.of("a", "b"), Stream[str])
    assert_type(Stream.empty(), Stream[Any])
    assert_type(Stream.iterate(1, lambda n: n + 1), Stream[int])
    assert_type(Stream.generate(lambda: "x"), Stream[str])
    assert_type(Stream.of_nullable("a"), Stream[str])
    assert_type(Stream.from_iterable({"a": 1}), Stream[str])
    assert_type(Stream.iterate(len("a"), lambda n: n < 9, lambda n: n + 1), Stream[int])
    assert_type(Stream.builder(), StreamBuilder[Any, Stream[Any]])


def builder(words: StreamBuilder[str, Stream[str]]) -> None:
    """A builder makes a stream of what it was given."""
    assert_type(words.add("a"), StreamBuilder[str, Stream[str]])
    assert_type(words.build(), Stream[str])
    words.accept("b")


def explained(words: Stream[str]) -> None:
    """Text is printed, every other format is returned; `into` takes what `collect` takes."""
    words.explain()
    words.explain("text", into=counting())
    assert_type(words.explain("svg"), Drawing)
    assert_type(words.draw("mermaid"), Drawing)
    assert_type(words.explain("dot", into=grouping_by(len, counting())), Drawing)
    assert_type(words.explain(format="html", into=to_ilist("words")), Drawing)


def looked_at(words: Stream[str]) -> None:
    """Tables are printed."""
    words.head()
    words.show(3)
