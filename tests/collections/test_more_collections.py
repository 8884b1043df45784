"""Sets, counters and queues of a context: how they are found, shown, read and refused."""

from __future__ import annotations

import pickle

import pytest

import dstream as ds
from dstream.collections.queue import IStreamQueue
from dstream.errors import CollectionDestroyedError, IllegalStateError, SerializationError, UnsupportedError
from tests.collections.stored import Clock


@pytest.fixture
def filled():
    """A context with one of each."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        ctx.get_set("s").update(["a"])
        ctx.get_counter("c").add(5)
        ctx.get_queue("q").put_all([None, "b"])
        yield ctx


def test_they_are_found_by_kind_and_name(filled):
    """Each is listed, and opened without being made."""
    found = [filled.existing(each.kind, each.name) for each in filled.collections()]

    assert list(map(repr, found)) == [
        "IStreamCounter('c', 5)",
        "IStreamQueue('q', 2 items: [None, 'b'])",
        "IStreamSet('s', 1 item, str: {'a'})",
    ]
    assert filled.existing("queue", "other") is None


def test_they_are_shown_as_tables(filled, capsys):
    """Numbers and items, in terminals and in notebooks."""
    for kind, name in filled.collections():
        filled.existing(kind, name).head(1)
        assert "<table>" in filled.existing(kind, name)._repr_html_()

    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["IStreamCounter 'c', 5", "count", "─────", "5"]
    assert {"(the first 1 item; there are more)", "'a'"} <= set(lines)


def test_looking_takes_nothing(filled):
    """What is leased is shown too, in its place."""
    with filled.get_queue("q").lease(60):
        assert repr(filled.get_queue("q")) == "IStreamQueue('q', 2 items: [None, 'b'])"

    assert repr(filled.get_queue("q")) == "IStreamQueue('q', 1 item: ['b'])"


def test_a_set_is_read_as_a_stream_and_as_a_table(filled):
    """The items, without an order."""
    filled.get_set("s").add("bb")

    assert filled.get_set("s").stream().map(len).sorted().to_list() == [1, 2]
    assert sorted(filled.get_set("s").to_arrow().column("value").to_pylist()) == ["a", "bb"]


def test_the_types_of_a_set_are_those_of_its_items(filled):
    """As they were given, or as the first commit decided; `strict` refuses others."""
    numbers = filled.get_set("numbers", value_type=int, strict=True)

    assert (numbers.value_type, filled.get_set("s").value_type) == (int, str)
    with pytest.raises(TypeError, match="strict"):
        numbers.add("a")


@pytest.mark.parametrize("kind", ["counter", "queue"])
def test_what_is_no_table_says_so(filled, kind):
    """There are no columns of a number, nor of what changes hands."""
    (name,) = [each.name for each in filled.collections() if each.kind == kind]
    for call in ("to_arrow", "to_df"):
        with pytest.raises(UnsupportedError, match="no table"):
            getattr(filled.existing(kind, name), call)()


@pytest.mark.parametrize("kind", ["set", "counter", "queue"])
def test_a_handle_does_not_travel(filled, kind):
    """The message says what to do instead."""
    (name,) = [each.name for each in filled.collections() if each.kind == kind]
    with pytest.raises(SerializationError, match=f"the {kind} '{name}' cannot be used inside a function"):
        pickle.dumps(filled.existing(kind, name))


def test_a_queue_that_is_gone_ends_its_leases(filled):
    """The block is told at its end that its item went with the queue."""
    queue = filled.get_queue("q")
    with pytest.raises(CollectionDestroyedError), queue.lease(60):
        queue.destroy()


def test_an_exception_of_a_block_outlives_the_queue(filled):
    """It is what leaves the block, with a note that the item could not be given back."""
    queue = filled.get_queue("q")

    def failing():
        with queue.lease(60):
            queue.destroy()
            raise LookupError("first")

    with pytest.raises(LookupError, match="first") as caught:
        failing()
    assert "queue 'q' gets the item back" in caught.value.__notes__[0]


def test_who_comes_too_late_takes_nothing(make):
    """A change runs again where others were faster; what it found before does not count."""
    store = make.store("queue", key_type=int, value_type=tuple)
    queue = IStreamQueue(store, make.runtime, Clock())
    queue.put("a")

    class Late:
        """A store on which somebody else takes the item while the first change is being made."""

        name, get_many = "q", store.get_many

        def update(self, keys, change):
            """Run a change on what is there, and again, as a conflict would."""
            change(store.get_many(keys))
            if len(queue):
                assert queue.take() == "a"
            return store.update(keys, change)

    with pytest.raises(TimeoutError):
        IStreamQueue(Late(), make.runtime, Clock()).take(timeout=0)


def test_a_queue_whose_items_are_gone_is_damaged(make):
    """It does not go on as if nothing had been lost."""
    store = make.store("queue", key_type=int, value_type=tuple)
    queue = IStreamQueue(store, make.runtime, Clock())
    queue.put_all("ab")
    store.update([0], lambda old: [None])

    with pytest.raises(IllegalStateError, match="item number 0 is not there"):
        queue.take(timeout=0)
