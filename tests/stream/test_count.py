"""`count`: how many items there are."""

from __future__ import annotations

import pytest

from dstream import IntStream, LongStream, Stream
from dstream.errors import IllegalStateError


def test_count_counts_every_item(engine):
    """None counts, equal items count each; nothing counts 0, one item 1."""
    assert engine.stream([1, None, 1], 5).count() == 3
    assert (engine.stream([], 3).count(), engine.stream(["a"], 3).count()) == (0, 1)


def test_count_runs_the_steps_before_it(engine):
    """What a step leaves out is not counted, what it adds is."""
    assert engine.stream(range(6), 3).filter(lambda n: n % 2).flat_map(lambda n: [n] * n).count() == 9


def test_count_of_a_range_does_not_bring_it_to_the_caller(default_engine):
    """A million ints are counted where they are made."""
    assert IntStream.range(0, 1_000_000).count() == 1_000_000


SIZED = {
    "range": (lambda: IntStream.range(0, 2**80), 2**80),
    "steps": (lambda: LongStream.range(2**80, 0, -2), 2**79),
    "boxed": (lambda: IntStream.range(0, 2**80).boxed(), 2**80),
    "as long": (lambda: IntStream.range(0, 2**80).as_long_stream(), 2**80),
    "as double": (lambda: IntStream.range(0, 2**80).as_double_stream(), 2**80),
    "sorted": (lambda: IntStream.range(0, 2**80).sorted(reverse=True), 2**80),
    "limit": (lambda: IntStream.range(0, 2**80).limit(2**70), 2**70),
    "skip": (lambda: IntStream.range(0, 2**80).skip(1).unordered().parallel(3), 2**80 - 1),
    "skip all": (lambda: IntStream.range(0, 2**70).skip(2**80), 0),
    "concat": (lambda: IntStream.concat(IntStream.range(0, 2**80), IntStream.of(1, 2)), 2**80 + 2),
    "union": (lambda: Stream.of("a").union(Stream.from_iterable(["b"]), Stream.from_iterable({1, 2})), 4),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_known_size_is_not_counted(default_engine, name):
    """Sources that know how many items they have say so, through all that no function of the user's stands in."""
    make, expected = SIZED[name]

    assert make().count() == expected


STEPS = {
    "map": lambda s, fn: s.map(fn),
    "peek": lambda s, fn: s.peek(fn),
    "sorted": lambda s, fn: s.sorted(key=fn),
    "map_to_int": lambda s, fn: s.map_to_int(fn),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_with_a_function_runs(engine, name):
    """A count may not hide what it fails on."""
    with pytest.raises(ZeroDivisionError):
        STEPS[name](engine.stream([1, 0], 2), lambda n: 1 // n).count()


def test_a_list_is_counted_as_it_is_then(engine):
    """Late binding holds; a closed stream is refused."""
    items = [1]
    stream = engine.stream(items)
    items.append(2)

    assert stream.count() == 2
    stream.close()
    with pytest.raises(IllegalStateError):
        stream.count()
