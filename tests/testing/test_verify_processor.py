"""`verify_processor` finds what is wrong with a processor, and says where."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import ClassVar

import pytest

from dstream.core import (
    AbstractProcessor,
    BroadcastKey,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    Watermark,
    processors,
    traverse,
)
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.testing import same_items_in_any_order, verify_processor


class Twice(AbstractProcessor):
    """Emits each item twice, and keeps its place."""

    def start(self, context):
        """Make what keeps the place."""
        self.twice = self.flat_mapper(lambda item: [item, item])

    def try_process(self, ordinal, item):
        """Emit it twice."""
        return self.twice.try_process(item)


class Total(AbstractProcessor):
    """Emits the sum of its items at the end, and saves it."""

    total = 0

    def try_process(self, ordinal, item):
        """Add an item."""
        self.total += item
        return True

    def complete(self):
        """Emit the sum."""
        return self.try_emit(self.total)

    def save_to_snapshot(self):
        """Save the sum."""
        return self.try_emit_to_snapshot(BroadcastKey("total"), self.total)

    def restore_entry(self, key, value):
        """Take the sum back."""
        self.total = value


def test_a_right_processor_passes():
    """In all runs, also one that needs several calls for an item."""
    verify_processor(Twice).input([1, Watermark(3), 2]).expect_output([1, 1, Watermark(3), 2, 2])
    verify_processor(Total).input([1, 2, 3]).expect_output([6])


def test_a_library_processor_passes():
    """It emits what waited when `tick` is called."""
    verify_processor(processors.flat_map(range)).input([3, 0, 2]).expect_output([0, 1, 2, 0, 1])


# What is found


class LosesTheSecond(AbstractProcessor):
    """Does not look at whether an item was taken."""

    def try_process(self, ordinal, item):
        """Emit it, and something else."""
        return self.try_emit(item) and (self.try_emit(-item) or True)


def test_an_item_lost_at_a_refused_offer_is_found():
    """Also when it was the last one; the message has it, and the item that it was made of."""
    with pytest.raises(
        AssertionError, match=r"LosesTheSecond.process\(0, 7\) took it, and -7, which the outbox had refused, is lost"
    ):
        verify_processor(LosesTheSecond).input([7]).expect_output([7, -7])


class LosesAtTheEnd(AbstractProcessor):
    """Says that it is done."""

    def complete(self):
        """Emit two items into an outbox for one."""
        self.try_emit(1)
        self.try_emit(2)
        return True


def test_an_item_lost_at_the_end_is_found():
    """There was no other call that could have offered it."""
    with pytest.raises(AssertionError, match=r"LosesAtTheEnd.complete\(\) returned True, and 2, .* is lost"):
        verify_processor(LosesAtTheEnd).expect_output([1, 2])


class OffersAnother(AbstractProcessor):
    """Makes another item in each call."""

    made = 0

    def try_process(self, ordinal, item):
        """Emit two of them."""
        self.made += 2
        return self.try_emit(self.made) and self.try_emit(self.made + 1)


def test_another_item_offered_again_is_found():
    """The message has both."""
    with pytest.raises(IllegalStateError, match=r"offer\(\) refused 3, which is to be offered again first, and got 4"):
        verify_processor(OffersAnother).input(["x"]).expect_output([])


class OffersAgainAtOnce(AbstractProcessor):
    """Waits for room where there will be none."""

    def try_process(self, ordinal, item):
        """Offer until it is taken."""
        while not (self.try_emit(item) and self.try_emit(item + 1)):
            pass
        return True


def test_offering_again_before_returning_is_found():
    """It would hang; the failure notes the call and the run."""
    with pytest.raises(IllegalStateError, match=r"got 5 after 6 was refused, in the same call") as caught:
        verify_processor(OffersAgainAtOnce).input([5]).expect_output([])

    assert caught.value.__notes__ == ["in OffersAgainAtOnce.process(0, [5]), in the run 'not saved'"]


class CountsBefore(AbstractProcessor):
    """Changes what it knows before it is done with the item."""

    counted = 0

    def try_process(self, ordinal, item):
        """Count, and then emit."""
        self.counted += 1
        return self.try_emit((item, self.counted))


class CountsItsEnds(CountsBefore):
    """Does the same at the end of an edge."""

    def try_process(self, ordinal, item):
        """Emit nothing."""
        return True

    def complete_edge(self, ordinal):
        """Count, and then emit."""
        return super().try_process(ordinal, "end")


@pytest.mark.parametrize(("kind", "emitted"), [(CountsBefore, [("a", 1), ("b", 2)]), (CountsItsEnds, [("end", 1)])])
def test_a_change_before_a_refused_offer_is_found(kind, emitted):
    """Also where there is one item to emit, for which an outbox of one item has room."""
    with pytest.raises(IllegalStateError, match="which is to be offered again first, and got") as caught:
        verify_processor(kind).input(["a", "b"]).expect_output(emitted)
    assert "in the run 'each emitted item refused first'" in "".join(caught.value.__notes__)


class TakesTheFirst(Processor):
    """Loses what else is in the inbox."""

    def init(self, outbox, context):
        """Keep it."""
        self.outbox = outbox
        self.left = []

    def process(self, ordinal, inbox):
        """Take all, and keep one."""
        self.left.append(inbox.drain()[0])

    def tick(self):
        """Emit what waits."""
        del self.left[: self.outbox.offer_all(self.left)]
        return not self.left


def test_items_lost_of_an_inbox_with_several_are_found():
    """Engines fill it with as many as there are."""
    verify_processor(TakesTheFirst).input([1]).disable_snapshots().expect_output([1])
    with pytest.raises(AssertionError, match="got something else in the run 'each emitted item refused first'"):
        verify_processor(TakesTheFirst).input([1, 2]).disable_snapshots().expect_output([1, 2])


class KeepsAList(Total):
    """Takes entries back in the order in which they come."""

    def start(self, context):
        """Begin."""
        self.items, self.saving = [], None

    def try_process(self, ordinal, item):
        """Keep it."""
        self.items.append(item)
        return True

    def save_to_snapshot(self):
        """Save each."""
        self.saving = self.saving or iter(list(enumerate(self.items)))
        if not self.emit_from_traverser_to_snapshot(self.saving):
            return False
        self.saving = None
        return True

    def restore_entry(self, key, value):
        """Keep it, wherever it was."""
        self.items.append(value)

    def complete(self):
        """Emit all."""
        return self.try_emit(tuple(self.items))


def test_a_state_that_depends_on_the_order_of_entries_is_found():
    """They come back in any."""
    with pytest.raises(AssertionError, match="depends on the order in which entries come back"):
        verify_processor(KeepsAList).input([3, 1, 2]).expect_output([(3, 1, 2)])


class BeginsAgain(AbstractProcessor):
    """Does not save how much of its end it has emitted."""

    emitted = 0

    def complete(self):
        """Emit two, each in a call of its own."""
        if self.emitted < 2 and self.try_emit(self.emitted):
            self.emitted += 1
            return False
        return self.emitted == 2


def test_an_end_that_begins_again_for_ever_is_found():
    """It would not come to an end."""
    with pytest.raises(AssertionError, match="far more than are expected"):
        verify_processor(BeginsAgain).input([]).expect_output([0, 1])


class SavesNothing(Total):
    """Forgets what it has."""

    def save_to_snapshot(self):
        """Save nothing."""
        return True


def test_a_state_that_is_not_saved_is_found():
    """Without being restored it is right, and the message says so."""
    with pytest.raises(
        AssertionError, match=r"in the run 'restored after every other item', and it was right without being restored"
    ):
        verify_processor(SavesNothing).input([1, 2, 3]).expect_output([6])


class SavesTwice(Total):
    """Saves one key again."""

    saved = 0

    def save_to_snapshot(self):
        """Save the same in two calls."""
        self.saved += self.try_emit_to_snapshot("total", self.total)
        return self.saved % 2 == 0


def test_a_key_that_is_saved_twice_is_found():
    """In one snapshot."""
    with pytest.raises(AssertionError, match="SavesTwice saved the key 'total' twice in one snapshot"):
        verify_processor(SavesTwice).input([1]).expect_output([1])


class SavesOthers(Total):
    """Goes on with another key."""

    saved = 0

    def save_to_snapshot(self):
        """Save two keys, of which the second has another name in each call."""
        self.saved += 2
        return all(self.try_emit_to_snapshot(key, 0) for key in (self.saved, self.saved + 1))


def test_another_key_offered_again_is_found():
    """The message has both."""
    with pytest.raises(IllegalStateError, match=r"offer_to_snapshot\(\) refused 3, .* and got 4"):
        verify_processor(SavesOthers).input([1]).expect_output([1])


class NotRestored(Total):
    """Saves, and takes nothing back."""

    restore_entry = AbstractProcessor.restore_entry


def test_a_snapshot_that_nobody_takes_back_is_found():
    """As on an engine, and with the place."""
    with pytest.raises(UnsupportedError, match="NotRestored saves a snapshot, and has no restore_entry") as caught:
        verify_processor(NotRestored).input([1]).expect_output([1])

    assert "in the run 'restored after every other item'" in caught.value.__notes__[0]


class SavesAnywhere(Total):
    """Saves while it processes, if there are snapshots."""

    def try_process(self, ordinal, item):
        """Save an item."""
        return not self.context.snapshotting_enabled or self.try_emit_to_snapshot("item", item)


def test_saving_outside_of_a_snapshot_is_found():
    """There is none that it could go into."""
    with pytest.raises(IllegalStateError, match=r"inside of save_to_snapshot\(\) alone"):
        verify_processor(SavesAnywhere).input([1]).expect_output([0])


class EmitsWhenClosed(AbstractProcessor):
    """Is late."""

    def close(self, error):
        """Emit what nobody takes."""
        self.try_emit("late")


def test_an_item_after_the_end_is_found():
    """No engine would take it."""
    with pytest.raises(IllegalStateError, match=r"'late' was emitted after complete\(\) had returned True"):
        verify_processor(EmitsWhenClosed).expect_output([])


class Stuck(Processor):
    """Leaves its items where they are."""


def test_a_processor_that_takes_nothing_is_found():
    """It would be called for ever."""
    with pytest.raises(AssertionError, match=r"Stuck.process\(0, \[1\]\) made no progress, in the run 'not saved'"):
        verify_processor(Stuck).input([1]).expect_output([])


@pytest.mark.parametrize("method", ["tick", "complete", "complete_edge", "save_to_snapshot", "try_process_watermark"])
def test_a_method_that_is_never_done_is_found(method):
    """It emits nothing, and says that it is not done."""
    stuck = type("Never", (Processor,), {method: lambda self, *given: False})

    with pytest.raises(AssertionError, match=rf"Never.{method}\(.*\) made no progress"):
        verify_processor(stuck).input([Watermark(1)]).expect_output([Watermark(1)])


def test_a_method_that_returns_nothing_is_found():
    """A forgotten return is neither True nor False."""
    silent = type("Silent", (Processor,), {"complete": lambda self: None})

    with pytest.raises(AssertionError, match=r"Silent.complete\(\) must return True or False, not None"):
        verify_processor(silent).expect_output([])


CLOCK = SimpleNamespace(now=0.0)


class Slow(AbstractProcessor):
    """Lets three seconds pass for each item."""

    def try_process(self, ordinal, item):
        """Let time pass."""
        CLOCK.now += 3
        return self.try_emit(item)


def test_a_cooperative_processor_that_is_too_slow_is_found():
    """By a clock that the test gives."""
    with pytest.raises(AssertionError, match=r"Slow.process\(0, \['x'\]\) took 3 s, .* cooperative .* may take 1 s"):
        verify_processor(Slow, clock=lambda: CLOCK.now).input(["x"]).expect_output(["x"])


def test_one_with_a_thread_of_its_own_may_be_slow():
    """And any one, if the test says so."""
    waiting = type("Waiting", (Slow,), {"is_cooperative": False})

    verify_processor(waiting, clock=lambda: CLOCK.now).input(["x"]).expect_output(["x"])
    slow = verify_processor(Slow, clock=lambda: CLOCK.now).input(["x"])
    slow.cooperative_timeout(0).expect_output(["x"])
    slow.cooperative_timeout(timedelta(seconds=3)).expect_output(["x"])


def test_another_order_is_found():
    """Unless the test says that it does not count."""
    verified = verify_processor(processors.map(abs)).input([1, 2])

    with pytest.raises(AssertionError, match=r"edge 0 got something else in the run 'not saved', in another order"):
        verified.expect_output([2, 1])
    verified.output_checker(same_items_in_any_order).expect_output([2, 1])


@pytest.mark.parametrize(("items", "found"), [([1], "unexpected: 2"), ([1, 2, 3], "missing: 3"), ([1, 2.0], "missing")])
def test_other_items_are_found(items, found):
    """One too many, one too few, one of another type."""
    with pytest.raises(AssertionError, match=found):
        verify_processor(processors.map(abs)).input([1, 2]).expect_output(items)


def test_a_none_is_found():
    """It stands for nothing in the protocol."""
    emits = type("EmitsNone", (AbstractProcessor,), {"try_process": lambda self, ordinal, item: self.try_emit(None)})

    with pytest.raises(TypeError, match="a processor emits no None"):
        verify_processor(emits).input([1]).expect_output([])
    with pytest.raises(TypeError, match="an inbox holds no None"):
        verify_processor(Twice).input([None]).expect_output([])


# How it runs


class Told(AbstractProcessor):
    """Emits what happens."""

    def start(self, context):
        """Have nothing to tell."""
        self.left = traverse([])

    def try_process(self, ordinal, item):
        """Emit the edge and the item."""
        return self.try_emit((ordinal, item))

    def complete_edge(self, ordinal):
        """Emit the edge."""
        return self.try_emit(ordinal)


def test_edges_of_one_priority_come_in_turn():
    """Item by item; each ends when it has no more."""
    told = verify_processor(Told).inputs([["a"], ["b", "c"]])

    told.expect_output([(0, "a"), (1, "b"), 0, (1, "c"), 1])


def test_an_edge_of_a_lower_number_comes_first():
    """With its end, before the first item of the others."""
    told = verify_processor(Told).inputs([["a"], ["b", "c"]], priorities=[0, -1])

    told.expect_output([(1, "b"), (1, "c"), 1, (0, "a"), 0])


def test_each_outbound_edge_is_compared():
    """By its ordinal; a watermark goes to all."""
    forked = type(
        "Forked", (AbstractProcessor,), {"try_process": lambda self, ordinal, item: self.try_emit(item, item % 2)}
    )
    verified = verify_processor(forked).input([1, 2, Watermark(5)])

    verified.expect_outputs([[2, Watermark(5)], [1, Watermark(5)]])
    with pytest.raises(AssertionError, match=r"edge 1 got something else .* unexpected: 1"):
        verified.expect_outputs([[2, Watermark(5)], [Watermark(5)]])


def test_a_processor_itself_runs_once():
    """It cannot be made again, so it is not restored."""
    verify_processor(SavesNothing()).input([1, 2]).expect_output([3])


def test_snapshots_are_disabled():
    """For what has none."""
    verify_processor(SavesNothing).input([1, 2]).disable_snapshots().expect_output([3])


class Waits(Processor):
    """Waits for the second call."""

    called = 0

    def complete(self):
        """Be done in every second call."""
        self.called += 1
        return self.called % 2 == 0


def test_progress_is_not_asserted():
    """For what waits for something outside."""
    verify_processor(Waits).disable_progress_assertion().disable_snapshots().expect_output([])
    with pytest.raises(AssertionError, match="made no progress"):
        verify_processor(Waits).expect_output([])


CALLS: list[str] = []
"""Processors are made again, so what they get is noted here."""


class Logged(Total):
    """Notes the calls that it gets, and all that is made for it."""

    def start(self, context):
        """Note the guarantee."""
        CALLS.append(context.guarantee)

    def tick(self):
        """Note it."""
        CALLS.append("tick")
        return True

    def finish_snapshot_restore(self):
        """Note it."""
        CALLS.append("restored")
        return True

    def close(self, error):
        """Note the error."""
        CALLS.append(f"close({error!r})")


def test_calls_come_in_the_order_of_the_protocol():
    """`tick` before items and before the end; a processor that is restored is another one."""
    CALLS.clear()
    verify_processor(Logged).input([1]).expect_output([1])
    once = ["tick", "tick", "tick", "close(None)"]

    assert CALLS[:5] == ["none", *once]
    assert CALLS[5:11] == ["none", "tick", *once]  # One more: the item is refused first.
    assert CALLS[11:16] == ["exactly-once", *once]
    assert CALLS[16:20] == ["exactly-once", "tick", "tick", "close(None)"]
    assert CALLS[20:22] == ["exactly-once", "restored"]


def test_a_failure_reaches_close_and_is_not_hidden_by_it():
    """What `close` raises then is less than why."""
    CALLS.clear()
    failing = type("Failing", (Logged,), {"close": lambda self, error: CALLS.append(error) or 1 // 0})

    with pytest.raises(AssertionError, match="unexpected: 1"):
        verify_processor(Logged).input([1]).expect_output([])
    with pytest.raises(TypeError, match="unsupported operand"):
        verify_processor(failing).input(["x"]).expect_output([])
    assert type(CALLS[-1]) is TypeError


class Suppliers(ProcessorMetaSupplier, ProcessorSupplier):
    """Notes its calls."""

    def __init__(self):
        self.calls = []

    def init(self, context):
        """Note it."""
        self.calls.append(type(context).__name__)

    def get(self, given):
        """Return itself, or a processor."""
        return (lambda address: self) if isinstance(given, list) else [Twice()]

    def close(self, error):
        """Note it."""
        self.calls.append("close")


def test_suppliers_are_used_as_engines_do():
    """Both are told where they are, and closed."""
    supplier = Suppliers()
    verify_processor(supplier).input([1]).disable_snapshots().expect_output([1, 1])

    assert supplier.calls == ["MetaSupplierContext", "SupplierContext", "close", "close"] * 2


class SavesGenerator(Total):
    """Saves what cannot travel."""

    def save_to_snapshot(self):
        """Save a generator."""
        return self.try_emit_to_snapshot("left", (each for each in "ab"))


def test_a_state_that_cannot_travel_is_found():
    """It is pickled, as on an engine."""
    with pytest.raises(TypeError, match="cannot pickle"):
        verify_processor(SavesGenerator).input([1]).expect_output([1])


def test_the_end_is_disabled():
    """As behind an input that has none."""
    verify_processor(Total).input([1, 2]).disable_complete_call().expect_output([])


class Endless(AbstractProcessor):
    """Counts seconds, and is never done."""

    def complete(self):
        """Let a second pass."""
        CLOCK.now += 1
        self.try_emit("tick")
        return False


def test_a_source_without_an_end_runs_for_a_time():
    """That of the clock of the test."""
    endless = verify_processor(Endless, clock=lambda: CLOCK.now).cooperative_timeout(0)

    endless.disable_run_until_completed(3).expect_output(["tick"] * 3)
    with pytest.raises(AssertionError, match="says that it never does"):
        verify_processor(Twice).disable_run_until_completed(3).expect_output([])


def test_a_snapshot_falls_between_calls_of_complete():
    """What goes on from the beginning after it was restored emits more."""
    again = type("Again", (AbstractProcessor,), {"complete": lambda self: self.emit_from_traverser(self.items)})
    again.start = lambda self, context: setattr(self, "items", traverse("ab"))

    with pytest.raises(AssertionError, match="restored after every"):
        verify_processor(again).expect_output(["a", "b"])


def test_wrong_arguments_are_refused():
    """Before anything runs."""
    with pytest.raises(TypeError, match="a vertex takes a function that makes a processor"):
        verify_processor(3)
    with pytest.raises(ValueError, match="there are 2 edges and 1 priorities"):
        verify_processor(Total).inputs([[], []], priorities=[1])
    with pytest.raises(ValueError, match="timeout must be a finite number of seconds"):
        verify_processor(Total).cooperative_timeout(-1)


class OnItsClass(AbstractProcessor):
    """Counts and collects on the class."""

    count = 0
    seen: ClassVar[list[int]] = []

    def try_process(self, ordinal, item):
        """Emit the item."""
        self.keep(item)
        return self.try_emit(item)

    def keep(self, item):
        """Remember it."""


class Rebinds(OnItsClass):
    """Binds an attribute of the class anew."""

    def keep(self, item):
        """Count."""
        OnItsClass.count += 1


class Adds(OnItsClass):
    """Binds a new one."""

    def keep(self, item):
        """Keep the last one."""
        type(self).last = item


class Shares(OnItsClass):
    """Changes a list that all instances share, since it looks like one of its own."""

    def keep(self, item):
        """Add it."""
        self.seen.append(item)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Rebinds, r"OnItsClass\.count was 0, and is 1"),
        (Adds, r"Adds\.last was set to 7"),
        (Shares, r"OnItsClass\.seen was \[\], and is \[7\]"),
    ],
)
def test_a_state_on_the_class_is_found(kind, found):
    """It is right while there is one processor, and no snapshot has it."""
    with pytest.raises(AssertionError, match=f"keeps state on its class: {found}, in the run 'not saved'"):
        verify_processor(kind).input([7]).expect_output([7])


def test_a_state_of_its_own_is_none_of_the_class():
    """Also where the class has a value of the same name, which instances begin with."""

    class Own(OnItsClass):
        def start(self, context):
            self.seen = []

        def keep(self, item):
            self.count += 1
            self.seen.append(item)

    verify_processor(Own).input([7, 8]).expect_output([7, 8])
