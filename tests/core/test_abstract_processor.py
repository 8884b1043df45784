"""`AbstractProcessor`: an item that was not done comes again, and nothing of it is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dstream.core import AbstractProcessor
from dstream.core.abstract_processor import FlatMapper
from dstream.errors import UnsupportedError
from dstream.spi.processor import ProcessorContext, Targets


class _OneByOne:
    """An outbox that takes one item, then refuses until it is emptied."""

    bucket_count = 1

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.is_full = False

    def offer(self, item: Any, to: Targets = None) -> bool:
        if self.is_full:
            return False
        self.taken.append(item)
        self.is_full = True
        return True


def _started(processor: AbstractProcessor) -> tuple[AbstractProcessor, _OneByOne]:
    outbox = _OneByOne()
    processor.init(outbox, ProcessorContext("tested"))  # type: ignore[arg-type]  # What snapshots need is not there.
    return processor, outbox


def _calls(step: Iterator[bool], outbox: _OneByOne) -> int:
    for count, done in enumerate(step, start=1):
        outbox.is_full = False
        if done:
            return count
    raise AssertionError("never done")


def test_flat_mapper_emits_each_item_once_over_many_calls() -> None:
    """What a full outbox did not take comes first in the next call."""
    processor, outbox = _started(AbstractProcessor())
    mapper: FlatMapper[int] = processor.flat_mapper(lambda n: [n, n + 1, n + 2])

    calls = _calls((mapper.try_process(1) for _ in range(9)), outbox)

    assert (outbox.taken, calls) == ([1, 2, 3], 3)


def test_emit_from_traverser_keeps_the_refused_item() -> None:
    """The same iterator goes on where the outbox refused."""
    processor, outbox = _started(AbstractProcessor())
    items = iter("abc")

    calls = _calls((processor.emit_from_traverser(items) for _ in range(9)), outbox)

    assert (outbox.taken, calls) == (["a", "b", "c"], 3)


def test_emit_from_traverser_refuses_a_list() -> None:
    """A list keeps no place, so the second call would begin again."""
    processor, _ = _started(AbstractProcessor())

    with pytest.raises(TypeError, match="takes a traverser or an iterator, which keeps its place, not list"):
        processor.emit_from_traverser([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("ordinal", [0, 1, 2, 3, 4])
def test_try_process_of_an_ordinal_calls_the_general_one(ordinal: int) -> None:
    """`try_process0` to `try_process4` go to `try_process` with their ordinal, which must be overridden."""
    processor, _ = _started(AbstractProcessor())

    with pytest.raises(UnsupportedError, match=rf"got an item by edge {ordinal}, and overrides neither"):
        getattr(processor, f"try_process{ordinal}")("item")


def test_restore_entry_must_be_overridden() -> None:
    """What was saved is not dropped in silence."""
    processor, _ = _started(AbstractProcessor())

    with pytest.raises(UnsupportedError, match="has no restore_entry"):
        processor.restore_entry("key", 1)
