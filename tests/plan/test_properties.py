"""What a plan answers: order, boundedness, parallelism, configuration, and whether it can finish."""

from __future__ import annotations

import pytest

from dstream.connectors.memory import Generate, Items, Iterate
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.plan import (
    Concat,
    Configure,
    Distinct,
    Filter,
    Limit,
    Map,
    Parallel,
    Read,
    Skip,
    Sorted,
    TakeWhile,
    Union,
    Unordered,
    check,
    configuration,
    is_bounded,
    is_ordered,
    parallelism,
    rewrite,
)
from dstream.plan.operations.calls import RewrittenCall
from dstream.plan.operations.streams import Node, Unary, node

ENDLESS = Read(Generate(lambda: 1))
COUNTING = Read(Iterate(0, abs))


def test_order_comes_from_the_source_and_from_sorting(source):
    """Lists and `iterate` are ordered, sets and `generate` are not; `sorted` gives an order, `unordered` takes it."""
    a_set = Read(Items({1, 2}))

    assert [is_ordered(rewrite(node)) for node in (source, COUNTING, a_set, ENDLESS)] == [True, True, False, False]
    assert [is_ordered(rewrite(node)) for node in (Sorted(a_set), Unordered(source), Map(Distinct(source), str))] == [
        True,
        False,
        True,
    ]


def test_a_concat_is_ordered_and_bounded_if_all_its_parts_are(source):
    """One part without an order, or without an end, takes it from the whole; a union has no order."""
    assert (is_ordered(rewrite(Union((source, source)))), is_bounded(rewrite(Union((source, source))))) == (False, True)
    assert (is_ordered(rewrite(Concat((source, COUNTING)))), is_ordered(rewrite(Concat((source, ENDLESS))))) == (
        True,
        False,
    )
    assert (is_bounded(rewrite(Concat((source, source)))), is_bounded(rewrite(Concat((source, COUNTING))))) == (
        True,
        False,
    )


def test_limit_and_take_while_end_a_stream(source):
    """What leaves items out at the front or in the middle does not."""
    ended = [Limit(ENDLESS, 3), TakeWhile(ENDLESS, bool), Limit(Sorted(source), 1)]

    assert [is_bounded(rewrite(node)) for node in ended] == [True] * 3
    assert [is_bounded(rewrite(node)) for node in (Skip(ENDLESS, 3), Filter(ENDLESS, bool), Distinct(ENDLESS))] == [
        False
    ] * 3


def test_the_last_call_of_parallel_decides(source):
    """Wherever it stands, the last one counts; None means that nobody asked."""
    plan = Map(Parallel(Map(Parallel(source, 3), str), 1), str)

    assert [parallelism(rewrite(each)) for each in (source, plan, Parallel(plan, None))] == [None, 1, None]


def test_later_settings_win(source):
    """All `configure` calls of a plan together; the later ones win."""
    plan = Map(Configure(Configure(source, {"a": "1", "b": "1"}), {"b": "2"}), str)

    assert configuration(rewrite(plan)) == {"a": "1", "b": "2"}


def test_check_refuses_to_sort_without_end(source):
    """An infinite stream cannot be sorted, whatever follows; the message shows the call."""
    with pytest.raises(IllegalStateError, match=r"\.sorted\(key=abs\)"):
        check(rewrite(Limit(Sorted(Concat((source, ENDLESS)), abs), 3)), needs_end=False)


def test_check_refuses_what_needs_the_end_of_an_endless_stream(source):
    """A search may run on an infinite stream, a count may not."""
    check(rewrite(ENDLESS), needs_end=False)
    check(rewrite(Sorted(Limit(ENDLESS, 3))), needs_end=True)

    with pytest.raises(IllegalStateError, match="every item"):
        check(rewrite(Map(ENDLESS, str)), needs_end=True)


def test_an_operation_that_says_nothing_has_no_default(source):
    """Whether its items end or are in order is asked of it, and it names itself if it does not know."""

    @node
    class Other(Unary):
        """An operation that does not say."""

    step = rewrite(Sorted(source)).step
    for ask in (is_bounded, is_ordered):
        with pytest.raises(UnsupportedError, match=r"nobody knows whether the items of \.sorted\(\)"):
            ask(Other(rewrite(source), step=step))


def test_each_operation_of_engines_defines_its_order_and_its_end():
    """A class that inherits from `Node` alone has no answer."""
    undefined = {
        kind.__name__
        for kind in _kinds_below(Node)
        if kind.__module__.startswith("dstream.") and not issubclass(kind, RewrittenCall)
        if kind.has_order is Node.has_order or kind.has_end is Node.has_end
    }

    assert undefined == {"Unary", "SeveralInputs", "TwoStreams"}


def _kinds_below(kind):
    for each in kind.__subclasses__():
        yield each
        yield from _kinds_below(each)
