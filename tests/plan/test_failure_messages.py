"""What an exception says when it leaves a terminal operation, word for word."""

from __future__ import annotations

import linecache

import pytest

from dstream import errors
from dstream.failures import MISSING, Failure, attach, blame, failure
from dstream.plan import Collect, Distinct, Filter, Map, Sorted, SourceLocation, Step, explained
from dstream.plan.failure_messages import described
from dstream.plan.walk import last_step, steps_of, topological

USER = "/home/ada/orders.py"
SOURCE = "\n" * 29 + "def inverse(n): return 1 // n\n"


@pytest.fixture
def inverse():
    """A function that stands in a file of the user's."""
    linecache.cache[USER] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), USER)
    namespace = {"__name__": "orders"}
    exec(compile(SOURCE, USER, "exec"), namespace)
    return namespace["inverse"]


def chain(source, fn, calls=1):
    """Return a plan of that many maps, a filter at its end."""
    node = source
    for number in range(calls):
        node = Map(node, fn, step=Step(where=SourceLocation(USER, 12 + number)))
    return Filter(node, bool, step=Step(where=SourceLocation(USER, 12 + calls)))


def told(root, fn, item, number=2):
    """Fail `fn` on `item` as step `number` of a plan; return the notes."""
    try:
        fn(item)
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next  # This function stands where dstream would.
        blame(error, steps_of(topological(root))[number - 1], item)
        described(error, root, "to_list", SourceLocation(USER, 50))
        return error.__notes__


def test_the_three_notes(source, inverse):
    """What happened, where with the chain around it, what to do."""
    happened, where, to_do = told(chain(source, inverse), inverse, 0)

    assert happened == (
        'What happened: inverse raised ZeroDivisionError at /home/ada/orders.py:30, in "def inverse(n): return 1 // n"'
    )
    assert where.splitlines() == [
        "Where: step 2 of 3, .map(inverse) at /home/ada/orders.py:12, on the item 0",
        "      source",
        "    > .map(inverse)  /home/ada/orders.py:12",
        "      .filter(bool)  /home/ada/orders.py:13",
    ]
    assert to_do == (
        "What to do: look at this item: handle it in inverse, or filter it out before this step; "
        "dstream.failure(error).replay() runs the step on it in this process, where a debugger stops inside inverse"
    )


def test_a_long_chain_is_folded_around_the_step(source, inverse):
    """A few calls before and after; how many more there are."""
    _, where, _ = told(chain(source, inverse, 100), inverse, 0, number=50)
    lines = where.splitlines()

    assert (lines[1], lines[-1]) == ("      ... 45 more calls ...", "      ... 49 more calls ...")
    assert [line.startswith("    > ") for line in lines[2:-1]] == [False] * 4 + [True] + [False] * 3


def test_the_item_is_cut(source, inverse):
    """At 200 characters."""
    _, where, _ = told(chain(source, inverse), inverse, "x" * 5000)

    assert where.splitlines()[0].endswith(", on the item '" + "x" * 199 + "...")


def test_a_function_without_lines_is_named(source):
    """Such as `int`: there is no line to show, and nothing to change in it."""
    happened, _, to_do = told(chain(source, int), int, "x")

    assert happened == "What happened: int raised ValueError"
    assert "handle it in a function of your own around int" in to_do


def test_the_innermost_function_of_the_user_is_named(source, inverse):
    """Not the one that the step was given, if that calls another."""
    happened, _, to_do = told(chain(source, lambda n: inverse(n)), lambda n: inverse(n), 0)

    assert happened.startswith("What happened: inverse raised ZeroDivisionError at /home/ada/orders.py:30")
    assert "handle it in the lambda" in to_do


def test_what_an_exception_was_raised_from_is_told(source):
    """With its line."""

    def fail(n):
        try:
            1 // n
        except ZeroDivisionError as error:
            raise KeyError(n) from error

    happened, _, _ = told(chain(source, fail), fail, 0)
    assert "fail raised KeyError at " in happened
    assert "(it came from ZeroDivisionError at " in happened


OURS = {
    errors.SourceError: ("the source could not be read", "check that what it reads is there"),
    errors.NullElementError: ("a None came to a place", "leave the None out with .filter"),
    errors.UnstableKeyError: ("a key cannot be grouped safely", "use a key that is a str"),
    errors.SerializationError: ("something cannot travel", "make such an object inside the function"),
    errors.EngineError: ("the engine or the storage could not go on", "mend what the message says"),
    errors.UnsupportedError: ("does not run", "dstream docs limits"),
    errors.CollectionDestroyedError: ("was destroyed", "get the collection again"),
    errors.CacheNotExistsError: ("never configured", "configure it once"),
    errors.SetupError: ("could not start", "do what the message says"),
    errors.IllegalStateError: ("could not go on", "change the pipeline as the message says"),
}


@pytest.mark.parametrize("kind", OURS)
def test_an_error_of_dstream_is_told_in_words_that_fit(source, kind):
    """By its kind: what happened, and what to do."""
    root = Distinct(source)
    error = kind("bad")
    blame(error, last_step(root))
    described(error, root, "to_list", None)
    happened, where, to_do = error.__notes__

    assert where.startswith("Where: step 2 of 2, .distinct()\n")
    assert (OURS[kind][0] in happened, OURS[kind][1] in to_do) == (True, True)


def test_items_that_cannot_be_compared(source):
    """`sorted` says so, and what it needs."""
    root = Sorted(source)
    error = TypeError("'<' not supported")
    blame(error, last_step(root))
    described(error, root, "to_list", None)

    assert error.__notes__[0] == "What happened: two items cannot be compared with each other"
    assert "give sorted() a key=" in error.__notes__[2]


def test_a_duplicate_key_asks_for_a_merge(source):
    """The advice fits the message."""
    root = Collect(source, None, step=Step(".collect(to_map(...))"))
    error = errors.IllegalStateError("Duplicate key 1 (attempted merging values a and b)")
    blame(error, last_step(root))
    described(error, root, "collect", None)

    assert "give the collector a merge function" in error.__notes__[2]


def test_an_error_that_blames_no_step_shows_the_chain(source, inverse):
    """And where the pipeline was run."""
    error = errors.EngineError("gone")
    attach(error, Failure(None, advice="wait"))
    described(error, chain(source, inverse), "to_list", SourceLocation(USER, 50))
    _, where, to_do = error.__notes__

    assert where.splitlines()[0] == (
        "Where: no single step is to blame; the pipeline was run by .to_list() at /home/ada/orders.py:50"
    )
    assert (len(where.splitlines()), ">" in where, to_do) == (4, False, "What to do: wait")
    assert failure(error).item is MISSING


def test_telling_twice_changes_nothing(source, inverse):
    """One boundary inside of another: the inner one has told it all."""
    error = ValueError("bad")
    root = chain(source, inverse)
    with pytest.raises(ValueError, match="bad"), explained(root, "collect"), explained(root, "to_list"):
        raise error

    assert len(error.__notes__) == 3


def test_what_cannot_be_told_never_hides_the_exception(source):
    """A step that is none of the plan, and a node whose label fails."""

    class Broken(type(source)):
        def label(self):
            raise OSError("no label")

    error = ValueError("bad")
    with pytest.raises(ValueError, match="bad"), explained(Broken(source.source), "to_list"):
        raise error
    assert error.__notes__ == ["(dstream could not say more about it: OSError: no label)"]
