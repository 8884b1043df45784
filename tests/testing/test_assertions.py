"""The assertions: what they accept, and what they say."""

from __future__ import annotations

import pytest

from dstream.testing import assert_fails, assert_items, assert_items_in_any_order


def refused(assertion, *arguments, **named):
    """Return the message of an assertion that fails."""
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments, **named)
    return str(caught.value)


def test_items_in_order(engine):
    """The same items in the same order pass."""
    assert_items(engine.stream([1, 2, 3]), [1, 2, 3])
    assert_items(iter("ab"), "ab")


def test_items_in_another_order_are_shown(engine):
    """The message has the place, and both lists."""
    assert refused(assert_items, engine.stream([1, 3, 2]), [1, 2, 3]) == (
        "at [1]: expected 2, got 3\n  expected 3 items: [1, 2, 3]\n  got 3 items: [1, 3, 2]"
    )


def test_items_in_any_order(engine):
    """Items that have no hash are counted too."""
    assert_items_in_any_order(engine.stream([[1], [2], [1]]), [[2], [1], [1]])


def test_items_that_are_missing_are_shown(engine):
    """The message says what is missing and what is too much."""
    said = refused(assert_items_in_any_order, engine.stream([[1], [1], [3]]), [[1], [2], [2]])

    assert said.startswith("missing: [2] (2 times); unexpected: [1], [3]\n")


def test_types_count():
    """One, one point nought and True are three things."""
    assert "expected 1 (int), got True (bool)" in refused(assert_items, [True], [1])
    assert "missing: 1; unexpected: 1.0" in refused(assert_items_in_any_order, [1.0], [1])


def parse(text):
    """Fail on what is no number."""
    return int(text)


def test_fails_returns_the_exception(engine):
    """Step and item are checked where they are given."""
    caught = assert_fails(engine.stream(["1", "x"]).map(parse), ValueError, step=".map(parse)", item="x")

    assert "invalid literal" in str(caught)


def test_fails_takes_a_call(engine):
    """Any terminal operation can be the one that fails."""
    assert_fails(lambda: engine.stream(["x"]).map(parse).count(), ValueError, item="x")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"step": ".filter(bool)"}, "expected the step .filter(bool) to fail, but it was .map(parse)"),
        ({"item": "y"}, "expected it to fail on 'y', but it was 'x'"),
        ({"item": None}, "expected it to fail on None, but it was 'x'"),
    ],
)
def test_fails_refuses_another_step_or_item(local_context, named, said):
    """The message says which it was."""
    assert refused(assert_fails, local_context.stream(["x"]).map(parse), ValueError, **named) == said


def test_fails_refuses_what_does_not_fail(local_context):
    """No exception is a failure of the test; so is one of another type, or one without a step."""
    stream = local_context.stream(["x"])

    assert refused(assert_fails, stream, ValueError) == "expected ValueError, but nothing was raised"
    assert "expected KeyError, got ValueError: inv" in refused(assert_fails, stream.map(parse), KeyError)
    assert "no step that is known" in refused(assert_fails, lambda: int("x"), ValueError, step=".map(parse)")
    assert "<not known>" in refused(assert_fails, lambda: int("x"), ValueError, item="x")
