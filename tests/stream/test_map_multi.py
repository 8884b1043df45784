"""`map_multi`: each item replaced by what a function emits for it."""

from __future__ import annotations

import pytest


def test_map_multi_gives_what_is_emitted_in_order(engine):
    """From none to many for each item, None among them; what the function returns does not matter."""

    def emit_twice(n, emit):
        if n:
            emit(n)
            emit(None)
        return "ignored"

    assert engine.stream([1, 0, 2], 2).map_multi(emit_twice).to_list() == [1, None, 2, None]


def test_map_multi_of_nothing_is_nothing(engine):
    """No items, nothing to emit."""
    assert engine.stream([], 2).map_multi(lambda n, emit: emit(n)).to_list() == []


def test_map_multi_to_numbers_checks_what_is_emitted(engine):
    """`map_multi_to_double` makes floats; `map_multi_to_int` refuses them and names the value."""
    numbers = engine.stream([1, 2], 2)

    assert repr(numbers.map_multi_to_double(lambda n, emit: emit(n)).to_list()) == "[1.0, 2.0]"
    assert numbers.map_multi_to_long(lambda n, emit: emit(n)).sum() == 3
    with pytest.raises(TypeError, match=r"0\.5"):
        numbers.map_multi_to_int(lambda n, emit: emit(0.5)).sum()
