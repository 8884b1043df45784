"""`verify_processor` finds what is wrong with a processor, and says where."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dstream.core import AbstractProcessor, Processor, Watermark, processors
from dstream.testing import same_items_in_any_order, verify_processor
from tests.testing.processors_to_verify import CLOCK, Total, Twice


def test_a_right_processor_passes():
    """In all runs, also one that needs several calls for an item."""
    verify_processor(Twice).input([1, Watermark(3), 2]).expect_output([1, 1, Watermark(3), 2, 2])
    verify_processor(Total).input([1, 2, 3]).expect_output([6])


def test_a_library_processor_passes():
    """It emits what waited when `tick` is called."""
    verify_processor(processors.flat_map(range)).input([3, 0, 2]).expect_output([0, 1, 2, 0, 1])


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
    with pytest.raises(AssertionError, match=r"offer\(\) refused 3, which is to be offered again first, and got 4"):
        verify_processor(OffersAnother).input(["x"]).expect_output([])


class OffersAgainAtOnce(AbstractProcessor):
    """Waits for room where there will be none."""

    def try_process(self, ordinal, item):
        """Offer until it is taken."""
        while not (self.try_emit(item) and self.try_emit(item + 1)):
            pass
        return True


def test_offering_again_before_returning_is_found():
    """It would hang; the message names the call and the run."""
    with pytest.raises(AssertionError, match=r"got 5 after 6 was refused, in the same call") as caught:
        verify_processor(OffersAgainAtOnce).input([5]).expect_output([])

    assert str(caught.value).startswith(
        "OffersAgainAtOnce.process(0, [5]) broke the protocol, in the run 'not saved': "
    )


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
    with pytest.raises(AssertionError, match="which is to be offered again first, and got") as caught:
        verify_processor(kind).input(["a", "b"]).expect_output(emitted)
    assert "in the run 'each emitted item refused first'" in str(caught.value)


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


class EmitsWhenClosed(AbstractProcessor):
    """Is late."""

    def close(self, error):
        """Emit what nobody takes."""
        self.try_emit("late")


def test_an_item_after_the_end_is_found():
    """No engine would take it."""
    with pytest.raises(AssertionError, match=r"'late' was emitted after complete\(\) had returned True"):
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


class Slow(AbstractProcessor):
    """Lets three seconds pass for each item."""

    def try_process(self, ordinal, item):
        """Advance the time."""
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

    with pytest.raises(AssertionError, match="a processor emits no None"):
        verify_processor(emits).input([1]).expect_output([])
    with pytest.raises(TypeError, match="an inbox holds no None"):
        verify_processor(Twice).input([None]).expect_output([])


def test_wrong_arguments_are_refused():
    """Before anything runs."""
    with pytest.raises(TypeError, match="a vertex takes a function that makes a processor"):
        verify_processor(3)
    with pytest.raises(ValueError, match="there are 2 edges and 1 priorities"):
        verify_processor(Total).inputs([[], []], priorities=[1])
    with pytest.raises(ValueError, match="timeout must be a finite number of seconds"):
        verify_processor(Total).cooperative_timeout(-1)
