"""One exception object that is raised again and again: each time it tells of this time."""

from __future__ import annotations

import dataclasses
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import collectors as c
import dstream as ds
from dstream.failures import MISSING
from dstream.gatherers import map_concurrent

ALWAYS_THIS = ValueError("always this")


class Slotted(Exception):
    """Keeps a value in a slot, another in an attribute."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code
        self.twice = 2 * code


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    """Refuses every attribute."""

    code: int


def failing(error: BaseException, on: int) -> Any:
    """Return a function that raises `error` on one number."""

    def fn(number: int) -> int:
        if number == on:
            raise error
        return number

    return fn


WAYS: dict[str, Any] = {
    "map": lambda s, fn: s.map(fn).to_list(),
    "map_concurrent": lambda s, fn: s.gather(map_concurrent(2, fn)).to_list(),
    "grouping_by": lambda s, fn: s.collect(c.grouping_by(fn)),
    "averaging": lambda s, fn: s.collect(c.averaging(fn)),
    "sorted": lambda s, fn: s.sorted(fn).to_list(),
    "for_each": lambda s, fn: s.for_each(fn),
}


@pytest.fixture
def switching():
    """Switch between threads all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("way", WAYS)
def test_threads_that_raise_one_object_each_find_their_item(local_context, switching, way):
    """A record of another thread's raise would be worse than none, which a busy machine may leave of a few."""

    def item_and_place(on: int) -> tuple[Any, list[str]]:
        with pytest.raises(ValueError, match="always this") as caught:
            WAYS[way](local_context.stream(range(8)), failing(ALWAYS_THIS, on))
        places = [note.splitlines()[0] for note in caught.value.__notes__ if note.startswith("Where")]
        return ds.failure(caught.value).item, [place.rpartition(" ")[2] for place in places]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(item_and_place, [number % 8 for number in range(100)]))

    right = [(number % 8, [str(number % 8)]) for number in range(100)]
    others = [one for one, other in zip(found, right, strict=True) if one != other]
    assert len(others) <= 5
    assert all(item is MISSING for item, _ in others)


@pytest.mark.parametrize("make", [Slotted, Frozen])
def test_an_exception_that_was_caught_before_keeps_its_own_item(local_context, make):
    """What is raised again is another object of the same kind, with the same values and cause, and notes of its own."""
    error, caught = make(7), []
    BaseException.__setattr__(error, "__cause__", KeyError("behind"))
    for on in (2, 5):
        with pytest.raises(make) as one:
            local_context.stream(range(8)).map(failing(error, on)).to_list()
        caught.append(one.value)

    assert [ds.failure(each).item for each in caught] == [2, 5]
    assert [each.code for each in caught] == [7, 7]
    assert vars(caught[1]).get("twice") == vars(caught[0]).get("twice")
    assert [len(each.__notes__) for each in caught] == [3, 3]
    assert caught[1].__cause__ is error.__cause__


def test_what_merge_was_given_is_not_told_of_another_raise(local_context):
    """The words of one raise go with it."""
    from reducers import to_imap

    def merge(left: int, right: int) -> int:
        raise ALWAYS_THIS

    with pytest.raises(ValueError, match="always this"):
        local_context.stream([1, 2]).collect(to_imap("raised_again", bool, int, merge))
    with pytest.raises(ValueError, match="always this") as caught:
        local_context.stream([1, 2]).map(failing(ALWAYS_THIS, 2)).to_list()

    assert (ds.failure(caught.value).item, ds.failure(caught.value).given) == (2, None)
