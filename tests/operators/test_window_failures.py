"""Failures of a user's functions inside of windows name the item, or the window and key that a result was made of."""

from __future__ import annotations

from operator import itemgetter

import pytest

from collectors import counting, mapping, to_list
from dstream.errors import UnstableKeyError
from dstream.failures import MISSING, item_of
from dstream.failures.attribution import given_to
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi import AggregateOperation
from dstream.spi.epochs import EpochTime
from dstream.values.time import END_OF_TIME
from dstream.windows import session, sliding, tumbling
from tests.operators.running import Running

KEY = itemgetter(0)
INVERSES = AggregateOperation(float, lambda total, item: total + 1 / item, lambda left, right: left + right)
NO_COMBINE = AggregateOperation(list, lambda held, item: held.append(1 / item))
FAILING = [
    FrameWindows(tumbling(10), None, INVERSES),
    FrameWindows(tumbling(10), (lambda item: 1 // item,), counting()),
    FrameWindows(tumbling(10), (lambda item: [item] if item == 0 else item,), counting()),
    SessionWindows(session(10), None, INVERSES),
    SessionWindows(session(10), (lambda item: 1 // item,), counting()),
]


def failed(fn, *args):
    """Run a part of a step that fails, and return the item on which it did, with the words that tell where else."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # Any, as the user's function raises it.
        fn(*args)
    ours = caught.value.__traceback__.tb_next.tb_frame
    return item_of(caught.value, ours, MISSING), given_to(caught.value)


def failed_partial(operator, *items, watermark=0):
    """Fail a task on its items, and return the one on which it failed."""
    return failed(operator.partial, 0, iter(items), EpochTime(1, 0.0, watermark, watermark), 3)[0]


@pytest.mark.parametrize("operator", FAILING)
def test_failures_before_the_shuffle_name_the_item(operator):
    """Key functions, keys that are none, and accumulating."""
    assert failed_partial(operator, (1, 4), (2, 0), (3, 5)) == 0


def test_failures_of_keys_say_what_a_key_is():
    """A list can be no key, in a window as elsewhere."""
    operator = FrameWindows(tumbling(10), (lambda item: [item],), counting())
    with pytest.raises(UnstableKeyError, match=r"\[7\] cannot be a key"):
        operator.partial(0, iter([(1, 7)]), EpochTime(1, 0.0, 0, 0), 3)


def test_failures_of_late_items_name_them():
    """Their key decides where they go."""
    operator = FrameWindows(tumbling(10), (lambda item: 1 // item,), counting(), gives_late=True)

    assert failed_partial(operator, (1, 0), watermark=100) == 0


@pytest.mark.parametrize("operator", [FAILING[0], FAILING[3]])
def test_failures_for_want_of_a_timestamp_name_the_item(operator):
    """A source may have items without a time."""
    assert failed_partial(operator, (1, 4), (None, "timeless")) == "timeless"


@pytest.mark.parametrize(
    ("operator", "given"),
    [
        (FrameWindows(tumbling(10), (KEY,), counting().with_finish(lambda n: 1 // 0)), "from 0 to 10 of the key 'a'"),
        (FrameWindows(sliding(20, by=10), None, counting(), to=lambda *parts: 1 // 0), "from -10 to 10"),
        (SessionWindows(session(10), (KEY,), counting(), to=lambda *parts: 1 // 0), "from 1 to 11 of the key 'a'"),
    ],
)
def test_failures_of_results_name_window_and_key(operator, given):
    """No single item is to blame where `finish` or `to` fails."""
    known = failed(Running(operator).results, [(0, [(1, ("a", 1))])], END_OF_TIME)

    assert known == (MISSING, f"in the window {given}")


def test_failures_of_what_cannot_be_combined_name_the_item():
    """All items are accumulated when the window closes, and the one that fails is known then."""
    running = Running(FrameWindows(tumbling(10), None, NO_COMBINE))

    assert failed(running.results, [(0, [(1, 4), (2, 0)])], END_OF_TIME) == (0, None)


@pytest.mark.parametrize(
    "operator",
    [FrameWindows(tumbling(10), (KEY,), INVERSES), SessionWindows(session(10), (KEY,), INVERSES)],
    ids=["tumbling", "session"],
)
def test_failures_of_combining_name_the_key(operator):
    """What two tasks have made of their items does not fit together."""
    state = operator.new()
    part = {10: {"a": 1.0}} if operator.kind == "window" else {"a": [[1, 11, 1.0]]}
    other = {10: {"a": "text"}} if operator.kind == "window" else {"a": [[1, 11, "text"]]}
    known = failed(state.apply, [(0, (part, [])), (0, (other, []))], EpochTime(1, 0.0, 0, 0))

    assert known == (MISSING, "in the group of the key 'a'")


def test_failures_inside_of_collectors_name_the_item():
    """The function that a collector calls is the user's too."""
    operator = FrameWindows(tumbling(10), None, mapping(lambda item: 1 / item, to_list()))

    assert failed_partial(operator, (1, 4), (2, 0)) == 0
