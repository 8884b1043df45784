"""`on_both_engines` as a decorator; `test_plugin` runs it for real."""

from __future__ import annotations

import inspect

import pytest

from dstream.testing import on_both_engines


def test_a_test_without_a_context_is_refused():
    """It would run several times and always do the same."""
    with pytest.raises(TypeError, match=r"takes ctx, a context; .*test_nothing\(tmp_path\) does not"):

        @on_both_engines
        def test_nothing(tmp_path):
            """Use no context."""


def test_the_name_and_the_other_fixtures_stay():
    """Pytest sees the test as it was written, with a case instead of the context."""

    @on_both_engines(partitions=[4])
    def test_something(tmp_path, ctx, engine="x"):
        """Say what must hold."""

    assert test_something.__doc__ == "Say what must hold."
    assert list(inspect.signature(test_something).parameters) == ["tmp_path", "engine", "dstream_case"]
    [mark] = test_something.pytestmark
    assert list(map(str, mark.args[1])) == ["local", "spark-4"]


@on_both_engines(partitions=[1, 3])
def test_a_context_of_the_kit_divides_as_the_case_says(ctx):
    """Without a number of its own, a stream has the partitions of the case."""
    wanted = {"local": [1], "spark": [1, 3]}[ctx.engine]

    assert len(ctx.stream(range(9)).partitions()) in wanted
    assert ctx.stream(range(9), partitions=2).map(abs).to_list() == list(range(9))
