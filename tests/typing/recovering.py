"""The types of what may fail, and of calls to services, from the user's side."""

from __future__ import annotations

from typing import Any, assert_type

import dstream as ds
from dstream import BadRecord, DeadLetter, DoubleStream, IntStream, LongStream, Stream, gatherers
from dstream.gatherers import Retry, map_concurrent
from reducers import to_ilist, to_imap


def what_becomes_of_items_that_fail(
    words: Stream[str], ints: IntStream, longs: LongStream, doubles: DoubleStream
) -> None:
    """Each gives a stream of the same type."""
    assert_type(words.map(int).ignore(ValueError), Stream[int])
    assert_type(words.map(int).resolve((ValueError, KeyError), lambda word, error: -1), Stream[int])
    assert_type(words.map(int).on_error(ValueError, into=to_ilist("bad")), Stream[int])
    assert_type(words.map(int).on_error(ValueError, into=to_imap("bad", lambda each: each.item, str)), Stream[int])
    assert_type(words.ignore(ValueError), Stream[str])
    assert_type(words.resolve(OSError, lambda word, error: str(error.filename)), Stream[str])
    assert_type(words.on_error(OSError, into=to_ilist("bad")), Stream[str])
    assert_type(ints.ignore(ValueError), IntStream)
    assert_type(ints.resolve(ValueError, lambda number, error: 0), IntStream)
    assert_type(ints.on_error(ValueError, into=to_ilist("bad")), IntStream)
    assert_type(longs.ignore(ValueError), LongStream)
    assert_type(longs.resolve(ValueError, lambda number, error: 0), LongStream)
    assert_type(longs.on_error(ValueError, into=to_ilist("bad")), LongStream)
    assert_type(doubles.ignore(ValueError), DoubleStream)
    assert_type(doubles.resolve(ValueError, lambda number, error: 0.5), DoubleStream)
    assert_type(doubles.on_error(ValueError, into=to_ilist("bad")), DoubleStream)


def letters(letter: DeadLetter) -> None:
    """A letter has the item and words about it."""
    assert_type(letter.item, Any)
    assert_type(letter.error, str)
    assert_type(letter.where, str)


def bad_records(record: BadRecord) -> None:
    """A bad record says where it stands."""
    assert_type(BadRecord(record.path, record.line, record.text), BadRecord)
    assert_type(record.line, int)
    assert_type(record.text, str)


def length(word: str) -> int:
    """Return the length of a word."""
    return len(word)


async def length_later(word: str) -> int:
    """Return the length of a word, later."""
    return len(word)


def calls(words: Stream[str]) -> None:
    """A plain function and an async one give what they return; a value in place of it is one more type."""
    assert_type(words.gather(map_concurrent(8, length)), Stream[int])
    assert_type(words.gather(map_concurrent(8, length_later)), Stream[int])
    assert_type(words.gather(map_concurrent(8, length, rate=2.5, retry=3, cache=True)), Stream[int])
    assert_type(words.gather(map_concurrent(8, length_later, retry=Retry(3, 0.5, 2, OSError))), Stream[int])
    assert_type(words.gather(map_concurrent(8, length, on_error=None)), Stream[int | None])
    assert_type(words.gather(map_concurrent(8, length_later, on_error="?")), Stream[int | str])
    assert_type(words.gather(gatherers.map_concurrent(8, length)), Stream[int])
    assert_type(words.gather(ds.gatherers.map_concurrent(8, length_later)), Stream[int])
    sent: Stream[int] = words.gather(map_concurrent(8, length, on_error=to_ilist("bad")))
    assert_type(sent.map(str), Stream[str])
