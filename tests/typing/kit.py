"""The test kit; two type checkers read this file, nothing runs it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

from collectors import counting, grouping_by, to_list
from dstream import Context, IntStream, Pipeline, Stream
from dstream.core import Inbox, Outbox, Processor
from dstream.spi import Sink, Source
from dstream.testing import (
    Epochs,
    Parts,
    TestInbox,
    TestOutbox,
    TestProcessorContext,
    VerifiedProcessor,
    assert_any_order,
    assert_collected,
    assert_collected_eventually,
    assert_contains,
    assert_fails,
    assert_items,
    assert_items_in_any_order,
    assert_ordered,
    check_collector,
    check_operation,
    epochs,
    items,
    on_both_engines,
    same_everywhere,
    same_items_in_any_order,
    verify_processor,
    watch,
)


def cut_by_hand(pipeline: Pipeline) -> None:
    """Epochs that a test cuts: what each sink gets, by the name of its stage."""
    by_hand = epochs()
    assert_type(by_hand, Epochs)
    assert_type(by_hand.of(pipeline), Epochs)
    assert_type(by_hand.cut({by_hand.source("s"): {0: [1]}}, now=1.0), dict[str, list[Any]])
    assert_type(by_hand.replay(), list[dict[str, list[Any]]])


def pipelines() -> None:
    """A stream comes back as a list of its items, any other result as it is.

    Of a lambda mypy sees no result where there are overloads: it gives Any. pyright sees it.
    """
    assert_type(same_everywhere(lengths, ["a", "b"]), list[int])
    assert_type(same_everywhere(sizes, {"a"}, partitions=[2], seed=3, engines=["local"]), list[int])
    assert_type(same_everywhere(words_by_length, Parts(["a"], ["b"])), dict[int, int])
    assert_type(same_everywhere(both, ["a"], Parts.cut("bc", 1)), list[str])
    same_everywhere(lambda words: words.map(lambda word: word.upper()), ["a"], by=len, may_change=["memo"])


def lengths(words: Stream[str]) -> Stream[int]:
    """Return the length of each word."""
    return words.map(len)


def sizes(words: Stream[str]) -> IntStream:
    """Return the length of each word as a stream of numbers."""
    return words.map_to_int(len)


def both(first: Stream[str], second: Stream[str]) -> Stream[str]:
    """Return the words of both."""
    return Stream.concat(first, second)


def words_by_length(words: Stream[str]) -> dict[int, int]:
    """Count the words of each length."""
    return words.collect(grouping_by(len, counting()))


def parts(source: Parts[int], ctx: Context) -> None:
    """A source with exact partitions."""
    assert_type(Parts([1], [], [2]), Parts[int])
    assert_type(Parts.cut("abc", 1), Parts[str])
    assert_type(Parts(["a"], ordered=False, in_caller=True, raising={0: OSError()}, pausing={0: 1.5}), Parts[str])
    assert_type(ctx.read(source), Stream[int])
    assert_type(source.parts, list[list[int]])
    assert_type(source.items_read, int)
    assert_type(source.parts_read, list[int])
    print(source.ordered, source.bounded, source.in_caller, source.raising, source.pausing, source.splits(1))


def watched(words: Stream[str]) -> None:
    """A watched function keeps its type."""
    spy = watch(lambda word: f"{word}!")
    parse = watch(len)
    assert_type(words.map(parse), Stream[int])
    assert_type(parse(["a"]), int)
    assert_type(spy.calls, int)
    print(spy.saw, spy.returned)


def asserted(words: Stream[str]) -> None:
    """Assertions take streams and iterables."""
    assert_items(words, ["a"])
    assert_items(words.map_to_int(len), [1])
    assert_items_in_any_order(words.map(len), [1])
    assert_items([1], [1])
    assert_type(assert_fails(words, ValueError, step=".map(len)", item="a"), ValueError)
    assert_type(assert_fails(lambda: words.count(), KeyError), KeyError)
    check_collector(to_list(), ["a", "b"], by=len)


@on_both_engines
def marked(ctx: Context) -> None:
    """The context is given by the decorator."""


@on_both_engines(partitions=[1, 4])
def marked_with_partitions(ctx: Context, name: str) -> None:
    """Fixtures may follow."""


def sinks(words: Stream[str]) -> None:
    """They take what they are compared with."""
    assert_type(assert_ordered(["a"]), Sink[str, None])
    assert_type(assert_any_order([1]), Sink[int, None])
    words.collect(assert_contains(["a"]))
    words.collect(assert_collected(lambda found: found.sort()))
    words.collect(assert_collected_eventually(5, lambda found: found.sort()))
    source: Source[int] = items(1, 2)
    check_operation(counting(), source.splits(1))


def processors_by_hand() -> None:
    """What is expected of a processor, and what surrounds one."""
    verified = verify_processor(Processor, clock=lambda: 0.0)
    assert_type(verified, VerifiedProcessor)
    assert_type(verified.input([1]).inputs([[1], "a"], priorities=[0, 1]), VerifiedProcessor)
    assert_type(verified.disable_snapshots().disable_complete_call(), VerifiedProcessor)
    assert_type(verified.disable_progress_assertion().cooperative_timeout(2), VerifiedProcessor)
    assert_type(verified.disable_run_until_completed(timedelta(seconds=1)), VerifiedProcessor)
    verified.output_checker(same_items_in_any_order).expect_output([1])
    verified.expect_outputs([[1], []])
    inbox: Inbox = TestInbox([1])
    outbox: Outbox = TestOutbox(1, 1, snapshot_capacity=1)
    Processor().init(outbox, TestProcessorContext(index=1))
    Processor().process(0, inbox)
    assert_type(TestOutbox(1).drain_queues_and_reset(), list[list[Any]])
