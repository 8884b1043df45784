"""The inbox and the outbox of tests, as Jet's TestOutboxTest has them."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from dstream.testing import TestInbox, TestOutbox, TestProcessorContext


def test_an_outbox_takes_what_it_has_room_for():
    """Then it refuses, until it is drained."""
    outbox = TestOutbox(2)

    assert [outbox.offer(each) for each in "abc"] == [True, True, False]
    assert outbox.drain_queue_and_reset(0) == ["a", "b"]
    assert outbox.offer("c")
    assert outbox.queue(0) == ["c"]


def test_an_outbox_puts_an_item_into_all_buckets_or_none():
    """Into some, if it is told so."""
    outbox = TestOutbox(1, 2)

    assert outbox.offer("a")
    assert outbox.offer("b", 1)
    assert not outbox.offer("c")
    assert outbox.drain_queues_and_reset() == [["a"], ["a", "b"]]
    assert outbox.offer("c", [0, 1])


def test_an_outbox_takes_the_beginning_of_a_block():
    """And knows what comes next."""
    outbox = TestOutbox(2)

    assert outbox.offer_all([1, 2, 3, 4]) == 2
    assert outbox.refused == 3
    assert outbox.drain_queue_and_reset(0) == [1, 2]
    assert outbox.offer_all([3, 4]) == 2


def test_an_outbox_that_is_reset_and_not_drained_is_full():
    """Jet: the queue has to be emptied too."""
    outbox = TestOutbox(1)
    outbox.offer("a")
    outbox.offer("b")
    outbox.reset()

    assert not outbox.offer("b")


def test_an_outbox_without_edges_takes_all():
    """Nobody listens."""
    outbox = TestOutbox()

    assert (outbox.offer("a"), outbox.bucket_count) == (True, 0)


@pytest.mark.parametrize("to", [-1, 1, [0, 1]])
def test_an_outbox_refuses_an_edge_that_is_not_there(to):
    """A negative one too."""
    with pytest.raises(ValueError, match=r"there is no outbound edge -?1: there are 1, counted from 0"):
        TestOutbox(1).offer("a", to)


def test_an_outbox_takes_a_snapshot():
    """As many entries as it has room for."""
    outbox = TestOutbox(snapshot_capacity=1)

    assert outbox.offer_to_snapshot("a", 1)
    assert not outbox.offer_to_snapshot("b", 2)
    assert outbox.drain_snapshot_queue_and_reset() == [("a", 1)]
    assert outbox.offer_to_snapshot("b", 3)
    assert outbox.snapshot_queue == [("b", 3)]


def test_an_outbox_refuses_a_key_that_is_there():
    """Keys of one processor are unique."""
    outbox = TestOutbox(snapshot_capacity=2)
    outbox.offer_to_snapshot("a", 1)

    with pytest.raises(ValueError, match="the key 'a' is in this snapshot already"):
        outbox.offer_to_snapshot("a", 2)


def test_an_outbox_refuses_anything_after_a_refused_entry():
    """The processor has to return."""
    outbox = TestOutbox(1, snapshot_capacity=1)
    outbox.offer_to_snapshot("a", 1)
    outbox.offer_to_snapshot("b", 1)

    with pytest.raises(IllegalStateError, match=r"offer\(\) got 'x' after 'b' was refused, in the same call"):
        outbox.offer("x")


def test_an_inbox_gives_what_was_added():
    """In order."""
    inbox = TestInbox("ab")
    inbox.add("c")
    inbox.add_all("de")

    assert (inbox.poll(), inbox.peek(), inbox.queue, len(inbox)) == ("a", "b", ["b", "c", "d", "e"], 4)
    inbox.clear()
    assert list(inbox) == []


def test_a_context_has_defaults():
    """Each can be given."""
    context = TestProcessorContext(guarantee="exactly-once", index=1, total_parallelism=2)

    assert (context.vertex, context.index, context.local_parallelism) == ("tested", 1, 2)
    assert context.snapshotting_enabled
    assert TestProcessorContext().guarantee == "none"
