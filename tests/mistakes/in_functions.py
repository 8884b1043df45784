"""Mistakes in functions: they arrive with the step, the line and the item."""

from __future__ import annotations

import functools
import operator
import threading

from collectors import averaging_int, counting, grouping_by, joining, mapping, to_list, to_map, to_unmodifiable_list
from dstream.errors import IllegalStateError, NullElementError, SerializationError, UnstableKeyError
from reducers import to_ilist, to_imap
from tests.mistakes.mistake import SPARK, mistake

WORDS = ["4", "7", "x", "5"]


class Plain:
    """A class that compares by identity."""


class Torn:
    """A source whose second item cannot be read."""

    ordered = bounded = True
    in_caller = False

    def splits(self, parallelism):
        return [self]

    def read(self):
        yield 1
        raise ConnectionResetError("the other side hung up")


@mistake(ValueError, r"invalid literal .* 'x'", r"replay\(\)")
def a_bug_in_the_third_step(desk):
    """The third of five steps fails on one item."""
    words = desk.ctx.stream(WORDS, 2).filter(bool)
    numbers = words.map(int)  # here
    numbers.filter(bool).map(str).to_list()


@mistake(ZeroDivisionError, r"division", r"replay\(\)")
def a_bug_in_a_lambda(desk):
    """A lambda divides by zero."""
    inverted = desk.ctx.stream([1, 0], 2).map(lambda n: 1 // n)  # here
    inverted.count()


@mistake(KeyError, r"'host'", r"replay\(\)")
def a_bug_in_a_classifier(desk):
    """A row lacks the field that groups it."""
    rows = desk.ctx.stream([{"host": "a"}, {}], 2)
    rows.collect(grouping_by(lambda row: row["host"], counting()))  # here


@mistake(TypeError, r"len", r"replay\(\)")
def a_bug_far_down_in_a_collector(desk):
    """A function below two collectors fails."""
    rows = desk.ctx.stream(["a", 5], 2)
    rows.collect(grouping_by(type, mapping(len, to_list())))  # here


@mistake(ZeroDivisionError, r"division|modulo", r"compar|key")
def a_bug_in_a_comparator(desk):
    """A comparator divides by zero."""
    numbers = desk.ctx.stream([3, 0, 2], 2)
    numbers.sorted(key=functools.cmp_to_key(lambda left, right: left % right)).to_list()  # here


@mistake(TypeError, r"missing 1 required positional argument: 'right'", r"cmp_to_key")
def a_comparator_for_a_key(desk):
    """A comparator of two arguments stands where a key is wanted."""
    numbers = desk.ctx.stream([3, 1], 2)
    numbers.sorted(lambda left, right: left - right).to_list()  # here


@mistake(TypeError, r"'<' not supported", r"key")
def keys_that_cannot_be_compared(desk):
    """Texts and numbers are sorted together."""
    mixed = desk.ctx.stream([1, "a"], 2)
    mixed.sorted().to_list()  # here


@mistake(ZeroDivisionError, r"division", r"more than one item")
def a_bug_in_a_merge(desk):
    """The function that merges two values fails."""
    words = desk.ctx.stream(["a", "a"], 2)
    words.collect(to_map(str, lambda word: 0, lambda left, right: left // right))  # here


@mistake(ZeroDivisionError, r"division", r"merge|two values|as it was")
def a_bug_in_a_merge_into_a_map(desk):
    """The same, into a distributed map."""
    words = desk.ctx.stream(["a", "a"], 2)
    words.collect(to_imap("merged", str, lambda word: 0, lambda left, right: left // right))  # here


@mistake(ZeroDivisionError, r"division", r"more than one item")
def a_bug_in_a_reduction(desk):
    """The function of `reduce` fails."""
    numbers = desk.ctx.stream([1, 0], 2)
    numbers.reduce(operator.floordiv)  # here


@mistake(ConnectionResetError, r"hung up", r"source|read")
def a_bug_in_a_reader(desk):
    """A source of the user's own fails while it is read."""
    desk.ctx.read(Torn()).map(str).to_list()  # here


@mistake(TypeError, r"flat_map\(\) needs a function that gives an iterable or None, not int", r"map\(")
def a_flat_map_that_gives_no_iterable(desk):
    """`flat_map(len)` is meant to be `map(len)`."""
    desk.ctx.stream(["a"]).flat_map(len).to_list()  # here


@mistake(TypeError, r"int.*str|str.*int", r"map_to_int|int")
def a_number_that_is_none(desk):
    """`map_to_int` is given texts."""
    desk.ctx.stream(["4"]).map_to_int(lambda text: text).sum()  # here


@mistake(RuntimeError, r"StopIteration", r"next\(.*default|StopIteration")
def an_iterator_that_runs_dry(desk):
    """`next` inside a function finds nothing."""
    desk.ctx.stream([1]).map(lambda n: next(iter(()))).to_list()  # here


@mistake(IllegalStateError, r"Duplicate key 2 \(attempted merging values aa and bb\)", r"merge")
def a_duplicate_key(desk):
    """Two items have one key in `to_map`."""
    desk.ctx.stream(["aa", "bb"]).collect(to_map(len, str))  # here


@mistake(UnstableKeyError, r"list|unhashable", r"tuple")
def a_list_as_a_key(desk):
    """A list cannot be a key."""
    desk.ctx.stream([[1, 2]]).distinct().to_list()  # here


@mistake(UnstableKeyError, r"Plain", r"__eq__|__hash__|dataclass")
def an_object_without_equality_as_a_key(desk):
    """An object that equals nothing but itself cannot be a key on two machines."""
    desk.ctx.stream([1, 2]).collect(grouping_by(lambda n: Plain()))  # here


@mistake(NullElementError, r"None", r"key|classifier|filter")
def a_none_as_a_key(desk):
    """A None is no key of a group."""
    desk.ctx.stream([1]).collect(grouping_by(lambda n: None))  # here


@mistake(NullElementError, r"None", r"filter|None")
def a_none_in_an_unmodifiable_list(desk):
    """`to_unmodifiable_list` refuses None, as in Java."""
    desk.ctx.stream([None]).collect(to_unmodifiable_list())  # here


@mistake(NullElementError, r"None", r"filter|limit\(1\)")
def a_none_that_is_found(desk):
    """`find_first` cannot give a None."""
    desk.ctx.stream([None, 1]).find_first()  # here


@mistake(TypeError, r"joining.*None|None", r"map\(str\)|filter")
def a_none_that_is_joined(desk):
    """`joining` takes texts only."""
    desk.ctx.stream(["a", None]).collect(joining(","))  # here


@mistake(TypeError, r"str", r"replay\(\)|map")
def a_text_that_is_averaged(desk):
    """The mapper of a collector gives a text."""
    desk.ctx.stream(["a"]).collect(averaging_int(lambda word: word))  # here


@mistake(AttributeError, r"'int' object has no attribute 'upper'", r"replay\(\)")
def a_method_that_the_item_does_not_have(desk):
    """An item of another type than expected, on the way into a list."""
    desk.ctx.stream(["a", 5], 2).map(lambda word: word.upper()).collect(to_ilist("words"))  # here


@mistake(TypeError, r"lock", r"map|keep|travel", engines=SPARK)
def a_result_that_cannot_travel(desk):
    """A function gives what cannot leave its worker."""
    import threading

    desk.ctx.stream([1, 2], 2).map(lambda n: threading.Lock()).to_list()  # here


@mistake(SerializationError, r"cannot pickle 'generator'", r"use flat_map\(\)", engines=SPARK)
def a_map_that_yields(desk):
    """`map` is given a generator function."""

    def halves(n):
        yield n / 2

    desk.ctx.stream([1, 2], 2).map(halves).to_list()  # here


@mistake(TypeError, r"an async function gives a coroutine", r"gather\(map_concurrent\(n, fn\)\)")
def a_map_that_is_async(desk):
    """`map` is given an async function."""

    async def asked(n):
        return n

    desk.ctx.stream([1, 2], 2).map(asked).to_list()  # here


@mistake(SerializationError, r"cannot pickle '_thread.lock'", r"map\(\) such an item to plain values", engines=SPARK)
def an_item_that_is_a_lock(desk):
    """`map` makes what belongs to one process."""
    desk.ctx.stream([1, 2], 2).map(lambda n: threading.Lock()).to_list()  # here


@mistake(TypeError, r"missing 1 required positional argument", r"\.starmap\(\.\.\.\) in place of \.map")
def a_lambda_of_two_arguments_over_pairs(desk):
    """Each item is a pair, and the lambda wants its parts."""
    added = desk.ctx.stream([(1, 2)], 2).map(lambda a, b: a + b)  # here
    added.to_list()
