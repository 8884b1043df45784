"""`AbstractProcessor`: an item that was not done comes again, and nothing of it is lost or doubled."""

from __future__ import annotations

import pytest

from dstream.core import AbstractProcessor, BroadcastKey, traverse
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.testing import TestInbox, TestOutbox, TestProcessorContext


def started(processor=None, *capacities, snapshot_capacity=0):
    """Return a processor and its outbox; of one bucket for one item, unless it is said."""
    made = processor or AbstractProcessor()
    outbox = TestOutbox(*(capacities or (1,)), snapshot_capacity=snapshot_capacity)
    made.init(outbox, TestProcessorContext())
    return made, outbox


def calls_until_done(step, outbox):
    """Return what comes by each edge in each call, until one is done."""
    calls = []
    while True:
        done = step()
        calls.append(outbox.drain_queues_and_reset())
        if done:
            return calls


class Noting(AbstractProcessor):
    """Notes what it gets; refuses items as often as it is told to."""

    def __init__(self, refusals=0):
        self.noted, self.refusals = [], refusals

    def try_process(self, ordinal, item):
        """Note both."""
        self.noted.append((ordinal, item))
        self.refusals -= 1
        return self.refusals < 0

    def restore_entry(self, key, value):
        """Note both."""
        self.noted.append((key, value))


# What is emitted


def test_try_emit_goes_to_all_edges():
    """Unless it is told which."""
    processor, outbox = started(None, 3, 3, 3)

    assert processor.try_emit("all")
    assert processor.try_emit("one", 1)
    assert processor.try_emit("two", [0, 2])
    assert outbox.drain_queues_and_reset() == [["all", "two"], ["all", "one"], ["all", "two"]]


def test_try_emit_says_when_an_edge_is_full():
    """Then no edge has the item."""
    processor, outbox = started(None, 1, 2)
    processor.try_emit("a")

    assert not processor.try_emit("b")
    assert outbox.drain_queues_and_reset() == [["a"], ["a"]]


def test_try_emit_refuses_a_none_and_an_unknown_edge():
    """At the call."""
    processor, _ = started()

    with pytest.raises(TypeError, match="emits no None"):
        processor.try_emit(None)
    with pytest.raises(ValueError, match="there is no outbound edge -1"):
        processor.try_emit("a", -1)


def test_flat_mapper_emits_each_item_once_over_many_calls():
    """What a full outbox did not take comes first in the next call."""
    processor, outbox = started()
    mapper = processor.flat_mapper(lambda n: [n, n + 1, n + 2])

    assert calls_until_done(lambda: mapper.try_process(1), outbox) == [[[1]], [[2]], [[3]]]
    assert calls_until_done(lambda: mapper.try_process(5), outbox) == [[[5]], [[6]], [[7]]]


@pytest.mark.parametrize(("to", "expected"), [(None, [[1], [1]]), (1, [[], [1]]), ([0], [[1], []])])
def test_flat_mapper_emits_to_edges(to, expected):
    """To all, to one, or to some; a traverser will do."""
    processor, outbox = started(None, 1, 1)
    mapper = processor.flat_mapper(lambda n: traverse([n]), to)

    assert calls_until_done(lambda: mapper.try_process(1), outbox) == [expected]


def test_flat_mapper_of_nothing_is_done():
    """Without a second call."""
    processor, outbox = started()

    assert calls_until_done(lambda: processor.flat_mapper(lambda n: []).try_process(1), outbox) == [[[]]]


@pytest.mark.parametrize(("to", "expected"), [(None, "aa"), (0, "a-"), ([1], "-a")])
def test_emit_from_traverser_emits_to_edges(to, expected):
    """To all, to one, or to some."""
    processor, outbox = started(None, 1, 1)
    items = traverse("a")

    assert processor.emit_from_traverser(items, to)
    assert "".join((outbox.queue(each) or ["-"])[0] for each in (0, 1)) == expected


@pytest.mark.parametrize("kind", [iter, traverse])
def test_emit_from_traverser_keeps_the_refused_item(kind):
    """The same traverser, or iterator, goes on where the outbox refused."""
    processor, outbox = started()
    items = kind("abc")

    assert calls_until_done(lambda: processor.emit_from_traverser(items), outbox) == [[["a"]], [["b"]], [["c"]]]


def test_emit_from_traverser_keeps_the_item_for_its_own_traverser():
    """Another one does not give it: its first item comes, and the outbox refuses that."""
    processor, outbox = started()
    processor.emit_from_traverser(iter("ab"))
    outbox.drain_queues_and_reset()

    with pytest.raises(IllegalStateError, match="refused 'b', which is to be offered again first, and got 'x'"):
        processor.emit_from_traverser(iter("x"))


def test_emit_from_traverser_refuses_a_list():
    """A list keeps no place, so the second call would begin again."""
    processor, _ = started()

    with pytest.raises(TypeError, match="takes a traverser or an iterator, which keeps its place, not list"):
        processor.emit_from_traverser([1, 2])


# What is processed


@pytest.mark.parametrize("ordinal", range(7))
def test_items_go_to_try_process_with_their_ordinal(ordinal):
    """Those of the first five edges by way of a method of their own."""
    processor, _ = started(Noting())
    processor.process(ordinal, TestInbox("ab"))

    assert processor.noted == [(ordinal, "a"), (ordinal, "b")]


@pytest.mark.parametrize("ordinal", range(5))
def test_the_method_of_an_ordinal_gets_its_items(ordinal):
    """And no others."""
    own = []
    name = f"try_process{ordinal}"
    processor, _ = started(type("Own", (Noting,), {name: lambda self, item: own.append(item) or True})())
    processor.process(ordinal, TestInbox("a"))
    processor.process((ordinal + 1) % 5, TestInbox("b"))

    assert (own, processor.noted) == (["a"], [((ordinal + 1) % 5, "b")])


def test_an_item_that_is_not_done_stays():
    """At the head of the inbox, and comes again."""
    processor, _ = started(Noting(refusals=1))
    inbox = TestInbox("ab")
    processor.process(0, inbox)
    assert inbox.queue == ["a", "b"]
    processor.process(0, inbox)

    assert (inbox.queue, processor.noted) == ([], [(0, "a"), (0, "a"), (0, "b")])


@pytest.mark.parametrize("ordinal", range(6))
def test_one_of_the_methods_must_be_overridden(ordinal):
    """The message names the edge, and both where there are both."""
    processor, _ = started()
    methods = rf"try_process\(\) nor try_process{ordinal if ordinal < 5 else ''}\(\)"

    with pytest.raises(UnsupportedError, match=rf"got an item by edge {ordinal}, and overrides neither {methods}"):
        processor.process(ordinal, TestInbox(["item"]))


@pytest.mark.parametrize("name", ["try_process", "try_process0"])
def test_a_method_that_returns_nothing_is_named(name):
    """A forgotten return would offer the item again for ever."""
    processor, _ = started(type("Silent", (AbstractProcessor,), {name: lambda self, *given: None})())

    with pytest.raises(TypeError, match=rf"{name}\(\) of Silent must return True when it is done with the item"):
        processor.process(0, TestInbox("a"))


def test_what_was_not_started_says_so():
    """As when a subclass overrides `init` and does not call the one above."""
    forgot = type("Forgot", (AbstractProcessor,), {"init": lambda self, outbox, context: None})()
    forgot.init(TestOutbox(1), TestProcessorContext())

    for used in (lambda: forgot.process(0, TestInbox("a")), lambda: forgot.try_emit(1), lambda: forgot.logger):
        with pytest.raises(IllegalStateError, match=r"Forgot was not initialized: .* overrides start\(context\)"):
            used()


def test_start_has_all_that_a_processor_uses():
    """The context, the outbox and the logger."""

    class Starting(AbstractProcessor):
        def start(self, context):
            self.seen = (context is self.context, self.outbox.bucket_count, self.logger is context.logger)

    assert started(Starting())[0].seen == (True, 1, True)


# What is saved


def test_entries_are_saved_one_by_one():
    """As far as there is room."""
    processor, outbox = started(None, 1, snapshot_capacity=1)

    assert processor.try_emit_to_snapshot("a", 1)
    assert not processor.try_emit_to_snapshot("b", 2)
    assert outbox.drain_snapshot_queue_and_reset() == [("a", 1)]


def test_entries_of_a_traverser_are_saved_over_many_calls():
    """The refused one comes first; that of items waits apart from it."""
    processor, outbox = started(None, 1, snapshot_capacity=1)
    items, entries = iter("xy"), iter([("a", 1), (BroadcastKey("b"), 2)])

    assert not processor.emit_from_traverser(items)
    outbox.drain_queues_and_reset()
    assert not processor.emit_from_traverser_to_snapshot(entries)
    assert outbox.drain_snapshot_queue_and_reset() == [("a", 1)]
    assert processor.emit_from_traverser_to_snapshot(entries)
    assert processor.emit_from_traverser(items)
    assert (outbox.snapshot_queue, outbox.queue(0)) == ([(BroadcastKey("b"), 2)], ["y"])


def test_entries_come_back_as_they_were_saved():
    """All of them, in one call; a `BroadcastKey` as one."""
    processor, _ = started(Noting())
    inbox = TestInbox([("a", 1), (BroadcastKey("b"), 2)])
    processor.restore_from_snapshot(inbox)

    assert (len(inbox), processor.noted) == (0, [("a", 1), (BroadcastKey("b"), 2)])


def test_restore_entry_must_be_overridden():
    """What was saved is not dropped in silence."""
    processor, _ = started()

    with pytest.raises(UnsupportedError, match="has no restore_entry"):
        processor.restore_from_snapshot(TestInbox([("key", 1)]))


def test_what_is_not_overridden_is_done():
    """Nothing is emitted by it."""
    processor, outbox = started()

    assert processor.tick()
    assert processor.complete()
    assert processor.complete_edge(0)
    assert processor.save_to_snapshot()
    assert processor.finish_snapshot_restore()
    assert processor.close(None) is None
    assert outbox.queue(0) == []


def test_what_start_and_try_process_raise_is_raised():
    """Unchanged."""
    raising = type("Raising", (AbstractProcessor,), {"start": lambda self, context: 1 // 0})
    with pytest.raises(ZeroDivisionError):
        started(raising())
    failing, _ = started(type("Failing", (AbstractProcessor,), {"try_process": lambda self, ordinal, item: 1 // 0})())

    with pytest.raises(ZeroDivisionError):
        failing.process(0, TestInbox("a"))
