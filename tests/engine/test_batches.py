"""Batches: how items travel."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
from itertools import count, islice

import pytest

from dstream.base.pickling import dumps
from dstream.errors import SerializationError
from dstream.operators.rows.batches import TARGET_BYTES, Batcher, dumps_items, loads, loads_items, travelling
from dstream.processors.blocks import GraphBlock
from dstream.values import Entry

_MAIN = """
import sys
from dstream.base.pickling import dumps

class Mine:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x

def double(n): return 2 * n

sys.stdout.buffer.write(dumps([Mine(3), double]))
"""


def test_batches_hold_every_item_in_order():
    """The counts are those of the lists, the items come back as they went."""
    batches = list(Batcher().batches(range(10_000)))
    items = [item for _, data in batches for item in loads(data)]

    assert (items, sum(size for size, _ in batches)) == (list(range(10_000)), 10_000)
    assert all(len(loads(data)) == size for size, data in batches)


def test_batches_of_nothing_are_none():
    """No items, no batch."""
    assert list(Batcher().batches([])) == []


@pytest.mark.parametrize("size", [10, 1000, 50_000])
def test_batches_are_about_as_large_as_they_should_be(size):
    """After the first ones a batch is near its target, whatever the size of an item."""
    batches = list(Batcher().batches(bytes(size) + n.to_bytes(8) for n in range(8_000_000 // (size + 100))))
    sizes = [len(data) for _, data in batches[5:-1]]

    assert sizes
    assert all(TARGET_BYTES / 2 < found < TARGET_BYTES * 2 for found in sizes)


def test_a_huge_item_travels_alone():
    """Items larger than the target come one at a time, from the first one on."""
    counts = [count for count, _ in Batcher().batches(bytes(400_000) for _ in range(70))]

    assert counts == [1] * 70


def test_batches_read_no_further_than_the_batch_at_hand():
    """An endless input is no obstacle."""
    items = count()
    ((size, _),) = islice(Batcher().batches(items), 1)

    assert next(items) == size


def test_classes_and_functions_of_main_travel_by_value():
    """What only the caller's script knows can be read by a process that never saw it."""
    data = subprocess.run([sys.executable, "-c", _MAIN], capture_output=True, check=True).stdout
    mine, double = loads(data)

    assert (mine.x, double(4), type(mine).__name__) == (3, 8, "Mine")


def test_a_class_inside_a_function_keeps_its_identity():
    """Here and back it is the same class."""

    class Local:
        pass

    assert type(loads(dumps([Local()]))[0]) is Local


def test_what_cannot_be_pickled_is_an_error():
    """A lock cannot travel."""
    with pytest.raises(TypeError, match="lock"):
        dumps([threading.Lock()])


def test_plain_items_use_the_plain_pickle():
    """Numbers and texts need no more than `pickle` itself."""
    assert pickle.loads(dumps([1, "a", None])) == [1, "a", None]


def test_entries_come_back_as_entries():
    """Entries travel as two lists, and are entries again."""
    entries = [Entry("a", 1), Entry(None, [2])]

    found = loads(dumps_items(entries))

    assert found == entries
    assert all(type(entry) is Entry for entry in found)


def test_entries_among_other_items_keep_their_type():
    """A pair beside an entry stays a pair."""
    assert list(map(type, loads(dumps_items([Entry("a", 1), ("a", 1)])))) == [Entry, tuple]


def test_loading_items_leaves_the_garbage_collector_as_it_was():
    """Enabled or not, it is so afterwards, also when the data are torn."""
    assert loads_items(dumps_items([1])) == [1]
    assert gc.isenabled()
    with pytest.raises(Exception, match=r"."):
        loads_items(b"torn")
    assert gc.isenabled()


def test_a_block_that_cannot_be_pickled_names_its_item():
    """Blocks are ours, and users know their items."""
    block = GraphBlock(0, 1, [2, threading.Lock()])

    with pytest.raises(SerializationError, match=r"^an item cannot travel between processes: lock <"):
        dumps_items([block])


def test_entries_of_a_block_travel_as_two_lists():
    """What comes out is a block with a list of entries; items of other kinds stay as they are."""
    entries = [Entry(n, n + 1) for n in range(100)]
    (plain,) = loads(dumps_items([GraphBlock(0, 1, entries)]))
    data = dumps_items([GraphBlock(0, 1, travelling(entries))])
    (block,) = loads(data)

    assert block == plain
    assert (type(block.items), type(block.items[0])) == (list, Entry)
    assert len(data) < len(dumps_items([GraphBlock(0, 1, [tuple(each) for each in entries])]))
    assert travelling([(1, 2), Entry(3, 4)]) == [(1, 2), Entry(3, 4)]


def test_an_entry_of_a_block_that_cannot_be_pickled_is_named():
    """Also where the block travels as two lists."""
    block = GraphBlock(0, 0, travelling([Entry(1, 2), Entry(3, threading.Lock())]))

    with pytest.raises(SerializationError, match=r"^an item cannot travel between processes: Entry "):
        dumps_items([block])
