"""`Items`: the items of a Python iterable."""

from __future__ import annotations

import itertools
import threading
import weakref

import cloudpickle
import pytest

from dstream.spi.source import Source, Split
from sources import Items, ItemsSplit


def contents(source, parallelism=3):
    """Read the splits one after another."""
    return [list(split.read()) for split in source.splits(parallelism)]


def test_items_meets_the_contract():
    """It is an ordered, bounded source whose splits hold their items."""
    source = Items([1, 2])

    assert isinstance(source, Source)
    assert all(isinstance(split, Split) for split in source.splits(2))
    assert (source.ordered, source.bounded, source.in_caller, source.one_shot) == (True, True, True, False)


def test_items_makes_as_many_splits_as_keep_every_core_busy():
    """Without `partitions` there are `parallelism` splits, but none without items."""
    assert contents(Items([1, 2, 3, 4, 5]), 2) == [[1, 2], [3, 4, 5]]
    assert contents(Items([1, 2]), 8) == [[1], [2]]


def test_items_of_nothing_is_one_empty_split():
    """An engine always has a task to run."""
    assert contents(Items([])) == [[]]
    assert contents(Items(range(0))) == [[]]
    assert contents(Items(iter([]))) == [[]]


def test_items_partitions_gives_exactly_that_many_splits():
    """Some are empty if there are fewer items; sizes differ by one at most."""
    assert contents(Items("ab", partitions=4), 1) == [[], ["a"], [], ["b"]]
    assert contents(Items(range(7), partitions=3), 1) == [[0, 1], [2, 3], [4, 5, 6]]


def test_items_reads_the_iterable_when_splits_are_asked_for():
    """A list that changed after the source was made is seen as it is then (late binding)."""
    numbers = [1]
    source = Items(numbers)
    numbers.append(2)

    assert contents(source, 1) == [[1, 2]]


def test_items_splits_are_a_snapshot():
    """What happens to the list afterwards does not reach splits that were given."""
    numbers = [1, 2]
    splits = Items(numbers).splits(1)
    numbers.clear()

    assert [list(split.read()) for split in splits] == [[1, 2]]


def test_items_cuts_a_range_into_ranges():
    """A range is never built, however long it is."""
    assert [split.items for split in Items(range(10, 0, -3)).splits(2)] == [range(10, 4, -3), range(4, -2, -3)]
    huge = Items(range(0, 10**30, 7)).splits(2)

    assert huge[1].items[0] == huge[0].items[-1] + 7


def test_items_of_a_set_has_no_order():
    """Sets and frozensets are unordered; the views of a dict are ordered."""
    assert not Items({1, 2}).ordered
    assert not Items(frozenset("ab")).ordered
    assert Items({"a": 1}.keys()).ordered


def test_items_follows_iter():
    """A str gives its characters, a dict its keys, and `__getitem__` alone is enough."""

    class Squares:
        def __getitem__(self, index):
            if index == 3:
                raise IndexError
            return index * index

    assert contents(Items("ab"), 1) == [["a", "b"]]
    assert contents(Items({"x": 1}), 1) == [["x"]]
    assert contents(Items(Squares()), 1) == [[0], [1, 4]]


def test_items_keeps_none():
    """None is an item as any other."""
    assert contents(Items([None, None]), 1) == [[None, None]]


def test_items_of_an_infinite_iterator_pulls_only_what_is_asked_for():
    """The first split takes one item and does not touch the one after it."""
    counter = itertools.count()
    source = Items(counter)
    first = next(iter(source.splits(4)))

    assert source.one_shot
    assert first.items == [0]
    assert next(counter) == 1


def test_items_of_a_one_shot_iterator_makes_growing_chunks():
    """Chunks grow by four from 1 up to 16,384 items."""
    splits = itertools.islice(Items(itertools.count()).splits(4), 8)

    assert [len(split.items) for split in splits] == [1, 4, 16, 64, 256, 1_024, 4_096, 16_384]


def test_items_of_a_one_shot_iterator_can_be_read_again():
    """What was pulled is kept, also when the first reading stopped early."""
    source = Items(n for n in range(100))
    next(iter(source.splits(1)))

    assert list(itertools.chain(*contents(source))) == list(range(100))
    assert list(itertools.chain(*contents(source))) == list(range(100))


def test_items_of_an_unsized_iterable_is_pulled_lazily_too():
    """An iterable without `len` may be infinite, though it can be read again."""

    class Naturals:
        def __iter__(self):
            return itertools.count()

    source = Items(Naturals())

    assert not source.one_shot
    assert [next(iter(source.splits(1))).items for _ in range(2)] == [[0], [0]]


def test_items_before_one_that_cannot_be_made_come_first(local_context):
    """As in a loop: who wants no more never meets the failure, and a function that fails at one before it is blamed."""

    def failing():
        yield from range(4)
        raise OSError("gone")

    assert local_context.stream(failing()).limit(4).to_list() == [0, 1, 2, 3]
    assert local_context.stream(failing()).any_match(lambda n: n == 3)
    with pytest.raises(ZeroDivisionError):
        local_context.stream(failing()).map(lambda n: 1 // (n - 3)).to_list()
    seen: list[int] = []
    with pytest.raises(OSError, match="gone"):
        local_context.stream(failing()).for_each(seen.append)
    assert seen == [0, 1, 2, 3]


def test_items_of_a_failing_iterator_fails_again():
    """A generator that raised looks empty afterwards; the second reading must not be a short one."""

    def numbers():
        yield 1
        raise OSError("gone")

    source = Items(numbers())

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            contents(source)


def test_items_of_an_interrupted_iterator_says_so():
    """Ctrl-C ends a generator; reading on would silently miss items."""

    def numbers():
        yield 1
        raise KeyboardInterrupt

    source = Items(numbers())

    with pytest.raises(KeyboardInterrupt):
        contents(source)
    with pytest.raises(RuntimeError, match="was interrupted: make a new one"):
        contents(source)


def test_items_of_a_one_shot_iterator_serves_two_threads():
    """A second reading that begins while the iterator is at work waits, and sees the same items."""
    results = []
    second = threading.Thread(target=lambda: results.append(list(itertools.chain(*contents(source)))))

    def numbers():
        second.start()
        second.join(timeout=0.1)  # It ends here only if it does not wait for us.
        yield from range(100)

    source = Items(numbers())
    results.append(list(itertools.chain(*contents(source))))
    second.join()

    assert results == [list(range(100))] * 2


def test_items_can_be_pickled():
    """The source travels with lists and with iterators that can be pickled themselves."""
    for iterable in ([1, 2], iter([1, 2])):
        source = cloudpickle.loads(cloudpickle.dumps(Items(iterable)))
        assert list(itertools.chain(*contents(source))) == [1, 2]


def test_items_refuses_bad_arguments_at_the_call():
    """What is not iterable, and partitions that are no positive int."""
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        Items(5)
    with pytest.raises(ValueError, match="partitions must be at least 1, not 0"):
        Items([], partitions=0)
    with pytest.raises(TypeError, match="partitions must be an int, not str"):
        Items([], partitions="2")


def test_items_shows_itself_in_short():
    """A long list does not flood the terminal."""
    assert repr(Items(list(range(1_000)), 2)) == "Items([0, 1, 2, 3, 4, 5, ...], partitions=2)"
    assert repr(ItemsSplit(list(range(1_000)))) == "ItemsSplit([0, 1, 2, 3, 4, 5, ...])"


class Made:
    """An iterable without a length, whose items can be seen to go."""

    def __init__(self, count):
        self.count = count
        self.items = weakref.WeakSet()

    def __iter__(self):
        for _ in range(self.count):
            item = Made(0)
            self.items.add(item)
            yield item


def test_items_that_can_be_made_again_are_not_kept():
    """Of an iterable without a length no more are in memory than a split has; of an iterator all are."""
    made, count = Made(200), 0
    for split in Items(made).splits(4):
        count += sum(1 for _ in split.read())
        del split
        assert len(made.items) < 150
    assert count == 200
    assert [len(list(split.read())) for split in Items(Made(0)).splits(4)] == [0]
    once = Made(200)
    source = Items(iter(once))
    for _ in range(2):
        assert sum(len(list(split.read())) for split in source.splits(4)) == 200
    assert len(once.items) == 200
