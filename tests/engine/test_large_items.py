"""Items of megabytes: no buffer between two operations holds more than a few of them at a time."""

from __future__ import annotations

import gc
import mmap
import weakref
from collections import deque
from itertools import chain

import pytest

import dstream.base.memory as memory
from collectors import counting, grouping_by, mapping, summing
from dstream.base.memory import BatchIterator, Growth, give_back, give_back_large_blocks, pieces, resident_bytes
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.tasks.gatherers import _Ends
from dstream.engine.tasks.routing import RouteFirstOnes, RouteItems, RouteSide
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Accumulate, RouteByKey, WriteItems
from dstream.errors import SerializationError
from dstream.gatherers import window_sliding
from dstream.operators.rows.batches import Batcher
from dstream.operators.rows.keys import Side
from dstream.operators.rows.spill import partial_groups
from dstream.schema.tables import batches_of
from dstream.storage.base.encoded_entries import Portions
from reducers import to_imap

SIZE = 2 * 2**20
MANY = 80


class Large(bytearray):
    """Something that can be counted while it lives."""

    __hash__ = object.__hash__


@pytest.fixture
def watched():
    """Items of 2 MB, and how many of them were alive at once."""
    alive: weakref.WeakSet[Large] = weakref.WeakSet()
    most = [0]

    def items():
        for number in range(MANY):
            item = Large(SIZE)
            item[:] = bytes([number]) * SIZE
            alive.add(item)
            most[0] = max(most[0], len(alive))
            yield item
            del item

    return items(), most


def _number(item):
    return item[0]


def _grouped(items, task, step):
    return partial_groups(items, grouping_by(_number, counting()), task.bound)


@pytest.fixture
def as_on_a_worker(monkeypatch):
    """The allocator gives back what earlier tests have freed, so that what is held now can be seen."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    give_back_large_blocks()
    gc.collect()
    give_back()


def _portions(items, task, step):
    portions = Portions(items, 8192)
    while some := portions.take():
        portions.learn(len(some), sum(map(len, some)))
        some.clear()
        yield


HOLDERS = {
    "batches": lambda items, task, step: Batcher().batches(items),
    "pieces": lambda items, task, step: pieces(items, 512),
    "rows": lambda items, task, step: WriteItems()(items, task),
    "routed": lambda items, task, step: RouteItems(_number, 4, step)(items, task),
    "distinct": lambda items, task, step: RouteByKey(_number, 4, step)(items, task),
    "a side": lambda items, task, step: RouteSide(Side(_number, step), 4)(items, task),
    "collected": lambda items, task, step: Accumulate(mapping(len, summing()), step)(items, task),
    "grouped": _grouped,
    "columns": lambda items, task, step: batches_of(map(bytes, items)),
    "portions": _portions,
    "windows": lambda items, task, step: window_sliding(3).gather_all(items),
    "ends": lambda items, task, step: chain.from_iterable(_Ends(2).chunks(items)),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_few_large_items_are_held_at_once(as_on_a_worker, watched, step, holder):
    """Of eighty items of 2 MB half are let go of before the last ones are made, where all were held."""
    items, most = watched
    deque(holder(items, StageTask(0, 2**60), step), maxlen=0)

    assert 0 < most[0] <= MANY // 2


FEW = 20


def _suddenly_large():
    """Many small items, then items of 2 MB."""
    yield from (bytes([number % 256]) * 16 for number in range(3000))
    yield from (bytes([number]) * SIZE for number in range(FEW))


def _peeked(items, task, step):
    keep = task._keeping(1)
    for item in items:
        keep(item)
    return task.last_side_rows()


SENDERS = {
    "rows": lambda items, task, step: WriteItems()(items, task),
    "routed": lambda items, task, step: RouteItems(_number, 4, step)(items, task),
    "distinct": lambda items, task, step: RouteByKey(None, 4, step)(items, task),
    "distinct, unordered": lambda items, task, step: RouteFirstOnes(None, 4, step)(items, task),
    "a side": lambda items, task, step: RouteSide(Side(_number, step), 4)(items, task),
    "peeked": _peeked,
}


@pytest.mark.parametrize("sender", SENDERS.values(), ids=SENDERS)
def test_large_items_behind_many_small_ones_are_not_sent_together(step, as_on_a_worker, sender):
    """What was learned of small items makes no batch of dozens of megabytes."""
    rows = list(sender(_suddenly_large(), StageTask(0, 2**60), step))

    assert sum(row.size >= 1 and len(row.payload) > SIZE for row in rows) >= FEW // 4
    assert max(len(row.payload) for row in rows) < 6 * SIZE


def test_large_rows_behind_many_small_ones_are_not_written_together(as_on_a_worker):
    """A portion has four megabytes, or one row that is larger, also where the rows before it were small."""
    portions, found = Portions(_suddenly_large(), 8192), []
    while some := portions.take():
        portions.learn(len(some), size := sum(map(len, some)))
        found.append(size)

    assert (sum(found), max(found) < 6 * SIZE) == (3000 * 16 + FEW * SIZE, True)


def test_a_few_large_items_behind_many_small_ones_are_noticed_while_they_come(as_on_a_worker):
    """Half of forty items of 2 MB, behind small ones of a microsecond each, are let go of before the rest comes."""
    made, let_go, most = [0], [0], [0]

    def items():
        yield from (bytes(map(int, str(number + 10**15))) for number in range(3000))
        for number in range(40):
            made[0] += 1
            most[0] = max(most[0], made[0] - let_go[0])
            yield bytes([number]) * SIZE

    taking = BatchIterator(items())
    while some := taking.take(4096):
        let_go[0] += sum(len(each) == SIZE for each in some)

    assert (made, let_go, most[0] <= 20) == ([40], [40], True)


def _taken(items):
    taking = BatchIterator(items)
    while some := taking.take(4096):
        yield some


def _until_grown(items):
    growth, held = Growth(), []
    for item in items:
        held.append(item)
        if growth.exceeded([item]):
            yield held
            held.clear()
            growth.start()


NOTICING = {"pieces": lambda items: pieces(items, 512), "taken": _taken, "until it has grown": _until_grown}


@pytest.mark.parametrize("noticing", NOTICING.values(), ids=NOTICING)
def test_items_are_noticed_while_the_kernel_takes_pages_of_files_back(as_on_a_worker, watched, tmp_path, noticing):
    """The process occupies no more than before, since for each item the pages of a file of as many bytes go."""
    items, most = watched
    with (tmp_path / "file").open("wb+") as file:
        file.truncate(MANY * SIZE)
        with mmap.mmap(file.fileno(), 0) as mapping:
            assert not any(mapping[:: mmap.PAGESIZE])
            before = resident_bytes()

            def going():
                for number, item in enumerate(items):
                    mapping.madvise(mmap.MADV_DONTNEED, number * SIZE, SIZE)
                    yield item
                    del item

            deque(noticing(going()), maxlen=0)

            assert resident_bytes() < before - MANY * SIZE // 2
    assert 0 < most[0] <= MANY // 4


@pytest.mark.parametrize("noticing", NOTICING.values(), ids=NOTICING)
def test_texts_are_noticed_for_which_the_process_need_not_grow(monkeypatch, watched, noticing):
    """There is room that earlier work has left, as much as all of them need."""
    monkeypatch.setattr(memory, "_own_bytes", lambda: 2**30)
    items, most = watched
    deque(noticing((0, (number, item)) for number, item in enumerate(items)), maxlen=0)

    assert 0 < most[0] <= MANY // 4


def test_no_length_is_asked_of_a_class_of_the_users():
    """It may say anything, and a text in a long or deep tuple is not looked for."""

    class Odd(str):
        def __len__(self):
            raise ZeroDivisionError

    odd = Odd("x" * 100_000)
    deep = ((((odd,),),),)

    assert [memory._large_bytes([each]) for each in (odd, (odd, 1), deep, (odd,) * 9, 7, "x")] == [
        *(100_000, 100_000),
        *(0, 0, 0, 0),
    ]
    assert memory._large_bytes([]) == 0


def test_no_item_is_lost_where_large_ones_are_noticed(as_on_a_worker):
    """All items come once and in order, whether one is read ahead or not."""
    taking, found = BatchIterator(_suddenly_large()), []
    while taking.has_more():
        found += taking.take(700)

    assert found == list(_suddenly_large())


def test_what_a_step_peeks_at_goes_to_a_file(op):
    """A task keeps 32 MB of what its items were, and reads the rest back at its end."""
    task = StageTask(0, 2**60)
    keep = task.peeking(op("peek", print))
    for number in range(60):
        keep(bytes([number]) * 2**20)

    assert task._side_rows._bytes < 40 * 2**20
    assert [row.size for row in task.last_side_rows()] == [1] * 60


MAKING = {
    "to_list": lambda items: items.to_list(),
    "sorted": lambda items: items.sorted(key=len).to_list(),
    "a map": lambda items: items.map(lambda item: (len(item), item)).collect(to_imap("large")),
    "of this process": lambda items: items.to_list(),
}


@pytest.mark.parametrize("making", MAKING)
def test_an_item_that_ends_java_is_refused_before(spark_context, monkeypatch, making):
    """It is named by its size, with the limit and the call; Java goes on."""
    monkeypatch.setattr(ClassicPort, "java_memory", lambda port: 64 * 2**20)
    size = 20 * 2**20
    source = spark_context.stream([bytes(size)] if making == "of this process" else [size]).parallel(2)
    items = source if making == "of this process" else source.map(bytes)
    with pytest.raises(SerializationError, match=r"20,971,\d+ bytes when pickled, and Spark's Java process") as refused:
        MAKING[making](items)

    notes = "".join(refused.value.__notes__)
    assert "spark.driver.memory" in notes
    assert "test_large_items.py" in notes
    assert spark_context.stream([1, 2]).parallel(2).to_list() == [1, 2]
