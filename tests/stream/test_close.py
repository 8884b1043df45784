"""`close`, `on_close` and `with`: the end of a stream's life."""

from __future__ import annotations

from functools import partial

import pytest

from dstream import Stream
from dstream.errors import IllegalStateError
from tests.failures.test_items import Mute, raising


def test_close_runs_all_handlers_in_order_once(local_context):
    """Handlers run in the order in which they were added, at the first `close` only."""
    calls = []
    stream = local_context.stream([1]).on_close(lambda: calls.append("a")).map(str).on_close(lambda: calls.append("b"))
    stream.close()
    stream.close()

    assert calls == ["a", "b"]


def test_close_runs_the_handlers_after_one_that_fails(local_context):
    """The first exception is raised at the end and says what failed besides."""
    calls = []
    stream = (
        local_context.stream([1]).on_close(lambda: 1 // 0).on_close(lambda: [][1]).on_close(lambda: calls.append(1))
    )

    with pytest.raises(ZeroDivisionError) as caught:
        stream.close()
    assert (calls, "IndexError" in caught.value.__notes__[0]) == ([1], True)


def test_terminal_operations_do_not_close(engine):
    """As in Java, a terminal operation runs no handler; a stream may be used again."""
    calls = []
    stream = engine.stream([1, 2], 2).on_close(lambda: calls.append(1))

    assert (stream.to_list(), stream.to_list(), calls) == ([1, 2], [1, 2], [])


def test_with_closes_at_the_end(local_context):
    """`with` closes, also when its body fails."""
    calls = []
    with pytest.raises(KeyError), local_context.stream([1]).on_close(lambda: calls.append(1)):
        raise KeyError

    assert calls == [1]


def test_closed_stream_is_refused_by_every_operation(local_context):
    """Neither lazy nor terminal operations take a closed stream."""
    stream = local_context.stream([1])
    stream.close()

    for call in (stream.to_list, stream.count, stream.find_first, lambda: stream.map(str), lambda: stream + stream):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


def test_stream_made_from_a_closed_one_is_refused(engine):
    """What was built before the source stream was closed does not run after."""
    stream = engine.stream([1])
    mapped = stream.map(str)
    stream.close()

    with pytest.raises(IllegalStateError, match="closed"):
        mapped.to_list()


def test_a_handler_that_fails_with_what_takes_no_notes_is_raised(local_context):
    """Another that failed is then not named."""
    with pytest.raises(Mute):
        local_context.stream([1]).on_close(partial(raising(Mute(), 1), 1)).on_close(lambda: 1 // 0).close()


def test_close_of_a_concatenation_closes_both(local_context):
    """The handlers of both parts run, those of the first part first."""
    calls = []
    first, second = (local_context.stream([1]).on_close(lambda name=name: calls.append(name)) for name in "ab")
    Stream.concat(first, second).close()

    assert calls == ["a", "b"]
