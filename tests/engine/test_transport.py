"""Transport: how an exception travels from a worker to the caller in the text of another."""

from __future__ import annotations

import threading

import pytest

from dstream.engine.spark.transport import WorkerFailure, from_worker, raise_to_driver
from dstream.errors import EngineError, SourceError
from dstream.failures import annotate, failure


class Keyworded(Exception):
    """Wants keywords."""

    def __init__(self, *, code):
        super().__init__("text", code)
        self.code = code


class Slotted(ValueError):
    __slots__ = ("extra",)


def sent(error):
    """Return the exception as it arrives, and the text in which it travelled."""
    with pytest.raises(WorkerFailure) as caught:
        raise_to_driver(error)
    text = f"org.apache.spark.SparkException: Job aborted\n  {caught.value}\n\tat java.lang.Thread.run"
    return from_worker(text), text


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a", 2),
        KeyError(("k", None)),
        Keyworded(code=7),
        Slotted("s"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        FileNotFoundError(2, "No such file", "a.txt"),
        SourceError(5, "torn", "b.txt"),
        StopIteration(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_as_it_was(error):
    """Type, arguments, text and attributes are the same."""
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args, str(arrived)) == (type(error), error.args, str(error))
    assert vars(arrived) == vars(error)


def test_os_errors_keep_their_number_and_file():
    """What the built-in `__init__` derives from the arguments is derived again."""
    arrived, _ = sent(SourceError(5, "torn", "b.txt"))

    assert (arrived.errno, arrived.strerror, arrived.filename) == (5, "torn", "b.txt")


def test_notes_and_failure_arrive(step):
    """What was noted on the worker can be read in the caller, with the traceback of the worker as text."""
    error = ValueError("bad")
    annotate(error, step, 17)
    arrived, _ = sent(error)

    assert arrived.__notes__ == ["in step 2 of 3: .map(f)", "on the item 17"]
    assert (failure(arrived).step, failure(arrived).item) == (step, 17)
    assert "ValueError: bad" in failure(arrived).remote_traceback


def test_an_argument_that_cannot_be_pickled_is_shown_instead(step):
    """The type stays; the argument becomes its text."""
    error = ValueError("no", threading.Lock())
    annotate(error, step, 17)
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args[0], "lock" in arrived.args[1]) == (ValueError, "'no'", True)
    assert arrived.__notes__[1] == "on the item 17"


def test_an_attribute_that_cannot_be_pickled_is_left_out():
    """Type and arguments stay."""
    error = ValueError("no")
    error.lock = threading.Lock()
    arrived, _ = sent(error)

    assert (type(arrived), arrived.args, hasattr(arrived, "lock")) == (ValueError, ("no",), False)


def test_an_exception_whose_class_cannot_be_pickled_becomes_an_engine_error():
    """If nothing else is possible, its name and text arrive."""

    class Stubborn(Exception):
        lock = threading.Lock()

    arrived, _ = sent(Stubborn("no way"))
    assert type(arrived) is EngineError
    assert "Stubborn: no way" in str(arrived)


def test_an_item_that_is_large_or_cannot_travel_is_left_out(step):
    """The exception arrives without it; the note still shows how it begins."""
    for item in (b"x" * 1_000_000, threading.Lock()):
        error = ValueError("bad")
        annotate(error, step, item)
        arrived, text = sent(error)

        assert repr(failure(arrived).item) == "<not known>"
        assert len(text) < 200_000


def test_another_text_holds_no_exception():
    """An error of Spark's own is not mistaken for one of the user's."""
    assert from_worker("org.apache.spark.SparkException: out of memory") is None
