"""`ctx.read(source)`: streams of what a source reads."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import dstream as ds
from dstream.errors import IllegalStateError


@dataclass(frozen=True)
class Letters:
    """The letters of some words, a split for each word."""

    words: tuple[str, ...]
    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism):
        return [Word(word) for word in self.words]


@dataclass(frozen=True)
class Word:
    word: str

    def read(self):
        return iter(self.word)


def test_read_gives_the_items_of_each_split_in_order(engine):
    """Splits follow one another, an empty one among them gives nothing."""
    assert engine.context.read(Letters(("ab", "", "c"))).to_list() == ["a", "b", "c"]


def test_read_of_a_source_without_splits_is_empty(engine):
    """A source that has nothing to read is a stream of nothing."""
    stream = engine.context.read(Letters(()))

    assert (stream.to_list(), stream.count(), stream.find_first().is_present()) == ([], 0, False)


@pytest.mark.parametrize("source", [None, [1, 2], "books.txt"])
def test_read_refuses_what_is_no_source(local_context, source):
    """Anything that has no splits is a `TypeError` at the call."""
    with pytest.raises(TypeError, match="source"):
        local_context.read(source)


def test_streams_of_a_closed_context_are_refused():
    """A closed context makes no streams, and those that it made do not run."""
    context = ds.connect(engine="local")
    stream = context.stream([1])
    context.close()

    for call in (lambda: context.stream([2]), lambda: context.read(Letters(())), stream.to_list):
        with pytest.raises(IllegalStateError, match="closed"):
            call()
