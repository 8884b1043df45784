"""`Optional`, `Entry`, `JournalEvent` and `Collector`, method by method; two type checkers read this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, assert_type

from dstream import Collector, Entry, JournalEvent, Optional, Stream


def optional(word: Optional[str]) -> None:
    """Every method of `Optional`."""
    assert_type(Optional.of("a"), Optional[str])
    assert_type(Optional.of_nullable("a"), Optional[str])
    assert_type(Optional.of_item("a"), Optional[str])
    assert_type(Optional.empty(), Optional[Any])
    assert_type(word.is_present(), bool)
    assert_type(word.is_empty(), bool)
    assert_type(word.get(), str)
    assert_type(word.or_else("b"), str)
    assert_type(word.or_else(None), str | None)
    assert_type(word.or_else_get(lambda: 1), str | int)
    assert_type(word.or_else_throw(), str)
    assert_type(word.or_else_throw(KeyError), str)
    assert_type(word.filter(lambda w: w.isalpha()), Optional[str])
    assert_type(word.map(len), Optional[int])
    assert_type(word.map(lambda w: w.upper() or None), Optional[str])
    assert_type(word.flat_map(lambda w: Optional.of(len(w))), Optional[int])
    assert_type(word.stream(), Stream[str])
    word.or_(lambda: Optional.of("b"))
    word.if_present(lambda w: print(w.upper()))
    word.if_present_or_else(lambda w: print(w.upper()), lambda: print("nothing"))


def entry(entry: Entry[str, int]) -> None:
    """An entry is a pair with names."""
    assert_type(entry.key, str)
    assert_type(entry.value, int)
    assert_type(Entry("a", 1), Entry[str, int])
    key, value = entry
    assert_type((key, value), tuple[str, int])


def event(event: JournalEvent) -> None:
    """What happened to an entry, of whatever types."""
    assert_type(event.kind, Literal["ADDED", "UPDATED", "REMOVED"])
    assert_type(event.offset, int)
    assert_type(event.timestamp, int | None)
    assert_type(event.key, Any)
    assert_type(event.old_value, Any)
    assert_type(event.new_value, Any)


def length(total: int, word: str) -> int:
    """Add a length."""
    return total + len(word)


def plus(left: int, right: int) -> int:
    """Add two lengths."""
    return left + right


def collector(lengths: Collector[str, int, float], key: str) -> None:
    """Every method of `Collector`."""
    assert_type(Collector(int, length, plus, str), Collector[str, int, str])
    assert_type(Collector.of(int, length, plus), Collector[str, int, int])
    assert_type(lengths.name, str)
    assert_type(lengths.collect(["a"]), float)
    assert_type(lengths.accumulated(0, ["a"]), int)
    assert_type(lengths.combined(1, 2), int)
    assert_type(dict(lengths.finished([(key, 1)])), dict[str, float])
    assert_type(lengths.supplier(), int)
    assert_type(lengths.accumulator(1, "a"), int | None)
    assert_type(lengths.combiner(1, 2), int | None)
    assert_type(lengths.finisher(1), float)
    print(lengths.characteristics, lengths.accumulate_all, lengths.keyed, lengths.parts)
    assert_type(lengths.functions, tuple[tuple[str, Callable[..., Any]], ...])
