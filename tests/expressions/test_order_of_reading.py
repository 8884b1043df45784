"""What a function does first is done first, once, and with what it is given: otherwise it is not read."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from typing import Any

import pytest

from dstream.expressions import Applied, Argument, Constant, Let, Routine
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.source import typed


def _second_first(x: Any) -> Any:
    first = 1 / x[0]
    return 1 / x[1] + first


def _in_one_way_only(x: Any) -> Any:
    first = 1 / x[0]
    return x and first


def _chosen(x: Any) -> Any:
    first = 1 / x[0]
    return first if x[1] else 0


def _twice(x: Any) -> Any:
    following = x + 1
    return following * following


def _asked_once_more(x: Any) -> Any:
    either = x[0] or x[1]
    return 5 if either else 6


def _chosen_by_the_item(x: Any) -> Any:
    first = 1 // x
    return first if x else 0


def _given_to_a_method(x: Any) -> Any:
    first = 1 / x[0]
    return x.count(first)


@pytest.mark.parametrize(
    "fn",
    [
        _second_first,
        _in_one_way_only,
        _chosen,
        _chosen_by_the_item,
        _given_to_a_method,
        _twice,
        _asked_once_more,
    ],
)
def test_a_variable_has_its_value_before_it_is_looked_at(fn: Callable[[Any], Any]) -> None:
    """Its value does not stand in its place where that would be later, more often, or seldom."""
    assert isinstance(read(fn), Let)


def _or_other(x: Any) -> Any:
    return x[0] or x[1]


def test_what_a_called_function_returns_is_asked_once_more() -> None:
    """Whoever calls it has a value, whose truth is not known from the way to it."""
    assert isinstance(read(lambda x: 5 if _or_other(x) else 6).condition, Let)  # type: ignore[union-attr]


def _by_place(a: Any, /) -> Any:
    return a * 2


def test_what_takes_arguments_by_place_only_is_not_read_with_a_name() -> None:
    """Python refuses the call."""
    found = read(lambda x: _by_place(a=x))  # type: ignore[call-arg]
    assert isinstance(found, Unreadable)
    assert "takes arguments by place only" in found.reason


def test_a_partial_is_not_read_with_what_is_no_constant() -> None:
    """A list may change before the function runs."""
    assert isinstance(read(functools.partial(lambda held, x=1: (held, x), [1])), Unreadable)


@pytest.mark.parametrize("held", [([1],), (1, (float("nan"), 2))])
def test_a_tuple_is_a_constant_if_its_members_are(held: Any) -> None:
    """A list in it may change, and a NaN is the same one in this process alone."""
    assert isinstance(read(lambda x: x in held), Unreadable)
    assert not isinstance(read(lambda x, held=(1, ("a", 2.5)): x in held), Unreadable)


def test_constants_of_two_forms_are_told_apart() -> None:
    """A source whose 0.0 has become -0.0 is another one."""
    forms = (0.0, -0.0, 0, False, (0.0,), (-0.0,), (0,))
    assert len({typed(form) for form in forms}) == len(forms)


def test_what_is_called_is_read_with_the_defaults_that_it_has_now() -> None:
    """They may be set anew between two plans."""

    def scaled(x: int, rate: int = 2) -> int:
        return x * rate

    def fn(x: int) -> int:
        return scaled(x)

    before = read(fn)
    scaled.__defaults__ = (3,)
    assert (before, read(fn)) == tuple(Applied("*", (Argument(0), Constant(rate))) for rate in (2, 3))


def _nine_ways(x: int) -> int:
    if x == 1:
        x = 2
    if x == 3:
        x = 4
    if x == 5:
        x = 6
    if x == 7:
        x = 8
    if x == 9:
        x = 10
    if x == 11:
        x = 12
    if x == 13:
        x = 14
    if x == 15:
        x = 16
    if x == 17:
        x = 18
    return x


def _of_text(text: str) -> Callable[[Any], Any]:
    linecache.cache[text] = len(text), None, text.splitlines(keepends=True), text
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, text, "exec"), names)
    return names["fn"]  # type: ignore[no-any-return]


def test_what_is_long_is_not_read() -> None:
    """Each way through it would be written down."""
    assert getattr(read(_of_text(f"fn = lambda x: ({'x, ' * 450})\n")), "reason", None) == "is long"
    assert isinstance(read(_nine_ways), Routine)


@pytest.mark.parametrize(("statements", "is_read"), [(100, True), (400, False)])
def test_statements_are_read_unless_they_are_very_many(statements: int, is_read: bool) -> None:
    """Reading them, and compiling them on each worker, takes time before the first item."""
    found = read(_of_text("def fn(x):\n" + "    x = x + 1\n" * statements + "    return x\n"))

    assert isinstance(found, Routine) is is_read
    assert is_read or getattr(found, "reason", None) == "is long"


def test_functions_of_one_code_are_read_with_their_own_defaults() -> None:
    """What was read of one of them is not what another one does."""
    first, second = (read(fn) for fn in [lambda x, rate=rate: x * rate for rate in (2, 3)])
    assert first == Applied("*", (Argument(0), Constant(2)))
    assert second == Applied("*", (Argument(0), Constant(3)))
