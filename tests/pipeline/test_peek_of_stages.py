"""What passes a stage can be logged under its name."""

from __future__ import annotations

import logging

import pytest

from reducers import to_ilist
from sources import Items


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the names of loggers and the messages."""
    return [(record.name, record.message) for record in caplog.records if record.name.startswith("dstream.peek")]


def test_items_are_logged_under_the_name_of_their_stage(pipeline, given_on, caplog):
    """At INFO, in encounter order, in the caller; the items pass."""
    caplog.set_level(logging.INFO, logger="dstream.peek")
    stage = pipeline.read_from(Items(range(3), 2)).map(str).set_name("texts").peek()

    assert given_on(stage) == ["0", "1", "2"]
    assert logged(caplog) == [("dstream.peek.texts", text) for text in "012"]


def test_a_name_given_later_counts(pipeline, given, caplog):
    """The logger bears the name that the stage has when it runs."""
    caplog.set_level(logging.INFO, logger="dstream.peek")
    source = pipeline.read_from(Items([1]))
    stage = source.peek()
    source.set_name("late")

    assert given(stage) == [1]
    assert logged(caplog) == [("dstream.peek.late", "1")]


def test_what_is_logged_can_be_chosen(numbers, given, caplog):
    """The text of an item, and which items."""
    caplog.set_level(logging.INFO, logger="dstream.peek")
    stage = numbers.peek(to_string="<{}>".format, should_log=lambda n: n > 3)

    assert given(stage) == [0, 1, 2, 3, 4, 5]
    assert logged(caplog) == [("dstream.peek.read_from", "<4>"), ("dstream.peek.read_from", "<5>")]


def test_nothing_is_made_where_nobody_listens(numbers, given, caplog):
    """A text that nobody reads is not built."""
    caplog.set_level(logging.WARNING, logger="dstream.peek")
    texts = []

    assert given(numbers.peek(to_string=texts.append)) == [0, 1, 2, 3, 4, 5]
    assert texts == []


def test_an_action_of_the_users_sees_the_items(numbers, given):
    """As on a stream."""
    seen = []

    assert given(numbers.peek(seen.append)) == seen == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [{"to_string": 3}, {"should_log": 3}, {"action": 3}])
def test_wrong_arguments_are_refused(numbers, wrong):
    """By their names; an action stands alone."""
    with pytest.raises(TypeError, match=f"^{next(iter(wrong))} must be a function, not int"):
        numbers.peek(**wrong)
    with pytest.raises(TypeError, match="takes an action, or to_string= and should_log="):
        numbers.peek(print, to_string=str)
    with pytest.raises(TypeError, match="should_log must give a result"):
        numbers.peek(should_log=generating)


def generating(item):
    """Yield, so that it would always be true."""
    yield item


def test_the_plan_of_a_job_names_the_logger(numbers):
    """It travels without the pipeline."""
    numbers.set_name("all").peek().write_to(to_ilist("x"))

    assert numbers.pipeline.plan().writes[0].node.action.stage == "all"


def test_what_logs_is_shown_as_the_user_wrote_it(numbers, given, caplog):
    """In plans and in failures, with the functions that were given."""
    caplog.set_level(logging.INFO, logger="dstream.peek")
    failing = numbers.peek(to_string=lambda n: 1 // n)

    with pytest.raises(ZeroDivisionError) as caught:
        given(failing)
    notes = "\n".join(caught.value.__notes__)
    assert ".peek(to_string=lambda)" in notes
    assert "handle it in the lambda" in notes
    assert repr(numbers.peek()).endswith(".peek()>")


def test_a_text_that_would_never_be_made_is_refused(numbers):
    """Of an async function nobody awaits the text."""

    async def text(item):
        return str(item)

    with pytest.raises(TypeError, match="to_string must give a result, and an async function"):
        numbers.peek(to_string=text)
