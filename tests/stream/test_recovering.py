"""`ignore`, `resolve`, `on_error`: what becomes of items that the step before fails on."""

from __future__ import annotations

import itertools

import pytest

import dstream as ds
from dstream import DeadLetter, IntStream, Stream
from dstream.errors import IllegalStateError
from dstream.gatherers import map_concurrent
from dstream.testing import Parts, same_everywhere
from reducers import replacing, to_ilist, to_imap


class Torn(Exception):
    """An exception that only this module knows."""


def torn(text):
    """Fail on what is no number with an exception of this module."""
    if not text.isdigit():
        raise Torn(text)
    return int(text)


def digits(text):
    """Give the digits of a text, and fail at the first other letter."""
    for letter in text:
        yield int(letter)


@pytest.fixture(params=["local", "spark"])
def stored(request, tmp_path_factory, spark_context):
    """A context with a storage for each engine in turn; that of Spark shares the session."""
    folder = tmp_path_factory.mktemp("letters")
    if request.param == "local":
        with ds.connect(engine="local", storage=str(folder)) as context:
            yield context
    else:
        with ds.connect("local[2]", storage=str(folder)) as context:
            yield context


TEXTS = ["1", "x", "2", "", "3", "4y", "5"]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s: s.map(int).ignore(ValueError), [1, 2, 3, 5]),
        (lambda s: s.map(torn).ignore(Torn), [1, 2, 3, 5]),
        (lambda s: s.filter(int).ignore((KeyError, ValueError)), ["1", "2", "3", "5"]),
        (lambda s: s.flat_map(digits).ignore(ValueError), [1, 2, 3, 5]),
        (lambda s: s.map_multi(lambda t, emit: [emit(int(c)) for c in t]).ignore(ValueError), [1, 2, 3, 5]),
        (lambda s: s.map_to_int(int).ignore(ValueError).boxed(), [1, 2, 3, 5]),
        (lambda s: s.map_to_int(lambda t: t).ignore(TypeError).boxed(), []),
        (lambda s: s.flat_map_to_double(digits).ignore(ValueError).boxed(), [1.0, 2.0, 3.0, 5.0]),
        (lambda s: s.map(str).filter(bool).map(int).ignore(ValueError).map(str), ["1", "2", "3", "5"]),
        (lambda s: s.gather(map_concurrent(2, int)).ignore(ValueError), [1, 2, 3, 5]),
    ],
)
def test_ignore_leaves_out_what_the_step_before_fails_on(engine, build, expected):
    """Whatever the step is; of an iterable that fails half-way nothing is given."""
    assert build(engine.stream(TEXTS, 3)).to_list() == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s: s.map(int).resolve(ValueError, lambda t, e: (t, type(e).__name__)), (("x", "ValueError"), 1)),
        (lambda s: s.filter(int).resolve(ValueError, lambda t, e: t + "!"), ("x!", "1")),
        (lambda s: s.flat_map(digits).resolve(ValueError, lambda t, e: None), (None, 1)),
        (lambda s: s.map_to_int(int).resolve(ValueError, lambda t, e: len(t)).boxed(), (1, 1)),
        (lambda s: s.map_to_double(int).resolve(ValueError, lambda t, e: len(t)).boxed(), (1.0, 1.0)),
        (lambda s: s.gather(map_concurrent(2, int)).resolve(ValueError, lambda t, e: t), ("x", 1)),
        (lambda s: s.gather(map_concurrent(2, int, on_error=None)), (None, 1)),
    ],
)
def test_resolve_puts_one_item_in_the_place(engine, build, expected):
    """It stands where the results of the item would stand, and is of the kind of the stream."""
    assert repr(build(engine.stream(["x", "1"], 2)).to_list()) == repr(list(expected))


@pytest.mark.parametrize("partitions", [1, 2, 8])
def test_on_error_sends_a_letter_for_each_item(stored, partitions):
    """The letters say what failed, why and where, in encounter order; the other items go on."""
    stream = stored.stream(TEXTS, partitions).map(torn).on_error(Torn, into=to_ilist("bad"))

    assert stream.to_list() == [1, 2, 3, 5]
    letters = list(stored.get_list("bad"))
    assert [(each.item, each.error, each.message, each.step) for each in letters] == [
        (text, "Torn", text, ".map(torn)") for text in ["x", "", "4y"]
    ]
    assert {type(each) for each in letters} == {DeadLetter}
    assert all(each.where.startswith(__file__) for each in letters)


@pytest.mark.parametrize(
    "end",
    [
        lambda s: s.count(),
        lambda s: list(s),
        lambda s: s.sorted().distinct().to_list(),
        lambda s: s.for_each_partition(list),
        lambda s: s.collect(to_imap("good", str, str)),
        lambda s: [list(part) for part in s.partitions()],
        lambda s: s.skip(1).limit(3).map(str).to_list(),
    ],
)
def test_letters_are_committed_once_whatever_ends_the_stream(stored, end):
    """Shuffles, several jobs, lazy iteration, reducers: one letter for each failing item."""
    end(stored.stream(TEXTS, 2).map(int).on_error(ValueError, into=to_ilist("bad")))

    assert sorted(each.item for each in stored.get_list("bad")) == ["", "4y", "x"]


def test_letters_of_a_short_circuit_are_those_that_were_seen(stored):
    """`find_first` looks at one partition, and commits what failed there before it returns."""
    stream = stored.stream(["x", "1", "2", "y"], 2).map(int).on_error(ValueError, into=to_ilist("bad"))

    assert stream.find_first().get() == 1
    assert [each.item for each in stored.get_list("bad")] == ["x"]
    assert stream.any_match(lambda n: n == 1)
    assert [each.item for each in stored.get_list("bad")] == ["x", "x"]


def test_a_loop_that_is_left_commits_what_it_saw(stored):
    """The letters are there once the iterator is closed."""
    items = iter(stored.stream(["x", "1", "2"], 1).map(int).on_error(ValueError, into=to_ilist("bad")))
    assert next(items) == 1
    items.close()

    assert [each.item for each in stored.get_list("bad")] == ["x"]


def test_letters_of_an_infinite_stream_come_once(stored):
    """Its chunks are computed again from the start; the letters are not sent again."""
    numbers = stored.read(_Endless()).map(lambda n: 1 // (n % 700)).on_error(ZeroDivisionError, into=to_ilist("bad"))
    assert len(list(itertools.islice(numbers, 2000))) == 2000

    items = [each.item for each in stored.get_list("bad")]
    assert items == list(range(0, 700 * len(items), 700))
    assert len(items) >= 3


class _Endless(Parts):
    """The numbers from 0 on."""

    bounded = False

    def __init__(self):
        super().__init__(range(20_000))


def test_nothing_is_committed_if_the_job_fails(stored):
    """An exception that nobody looks after ends the job, and the letters with it."""
    stored.get_list("bad")
    with pytest.raises(ZeroDivisionError):
        stored.stream(["x", "0"], 2).map(int).on_error(ValueError, into=to_ilist("bad")).map(lambda n: 1 // n).to_list()

    assert list(stored.get_list("bad")) == []


def test_letters_replace_those_of_the_last_run(stored):
    """Also by none: `replacing` works as it does at the end of a stream."""
    bad = replacing(to_ilist("bad"))
    stored.stream(["x"], 1).map(int).on_error(ValueError, into=bad).count()
    stored.stream(["1"], 1).map(int).on_error(ValueError, into=bad).count()

    assert list(stored.get_list("bad")) == []


def test_letters_go_into_a_map(stored):
    """A reducer with functions of its own gets them as it gets items."""
    bad = to_imap("bad", lambda each: each.item, lambda each: each.error)
    stored.stream(TEXTS, 3).map(int).on_error(ValueError, into=bad).count()

    assert dict(stored.get_map("bad").items()) == {"x": "ValueError", "": "ValueError", "4y": "ValueError"}


def test_many_letters_arrive_in_order(stored):
    """More of them than fit into one row, or are held in memory."""
    stored.stream(range(5000), 4).map(lambda n: 1 // 0).on_error(ArithmeticError, into=to_ilist("bad")).count()

    assert [each.item for each in stored.get_list("bad")] == list(range(5000))


def test_letters_whose_item_cannot_be_pickled_say_how_it_reads(stored):
    """The job goes on."""
    generators = stored.stream([1], 1).map(lambda n: (n for _ in "a"))
    generators.map(len).on_error(TypeError, into=to_ilist("bad")).count()
    (letter,) = stored.get_list("bad")

    assert (letter.error, letter.item.startswith("<generator object")) == ("TypeError", True)


def test_letters_of_calls_are_those_of_a_following_on_error(stored):
    """`map_concurrent(on_error=reducer)` and `.on_error(Exception, into=reducer)` are the same."""
    numbers = stored.stream(TEXTS, 2)
    one = numbers.gather(map_concurrent(3, int, on_error=to_ilist("one"))).to_list()
    two = numbers.gather(map_concurrent(3, int)).on_error(Exception, into=to_ilist("two")).to_list()
    letters = [[(each.item, each.step) for each in stored.get_list(name)] for name in ("one", "two")]

    assert one == two == [1, 2, 3, 5]
    assert letters[0] == letters[1] == [(text, ".gather(map_concurrent(3, int))") for text in ["x", "", "4y"]]


def test_the_first_that_is_for_the_exception_decides(engine):
    """Each looks at what those before it did not take; a class is for those below it."""

    def fail(kind):
        raise kind

    kinds = engine.stream([KeyError, ValueError, IndexError, OSError], 2)
    stream = (
        kinds.map(fail).ignore(KeyError).resolve(LookupError, lambda k, e: "lookup").resolve(Exception, lambda k, e: 1)
    )

    assert stream.to_list() == [1, "lookup", 1]


@pytest.mark.parametrize("build", [lambda s: s.map(int), lambda s: s.gather(map_concurrent(2, int))])
def test_another_exception_names_step_item_and_line(engine, build):
    """What no guard is for ends the job as if there were none, and can be replayed."""
    with pytest.raises(ValueError, match="invalid literal") as caught:
        build(engine.stream(["1", "x"], 2)).ignore(KeyError).filter(bool).to_list()
    failure = ds.failure(caught.value)

    assert (failure.item, failure.step.position, failure.where.file) == ("x", 2, __file__)
    with pytest.raises(ValueError, match="invalid literal"):
        failure.replay()


def test_a_function_that_resolves_and_fails_is_to_blame(engine):
    """Its exception names its own step, and no other guard catches it; it can be replayed."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream(["x"], 1).map(int).resolve(ValueError, lambda t, e: 1 // 0).ignore(ZeroDivisionError).to_list()
    failure = ds.failure(caught.value)

    assert (failure.item, failure.step.label) == ("x", ".resolve(ValueError, lambda)")
    with pytest.raises(ZeroDivisionError):
        failure.replay()


def test_items_are_closed_and_read_lazily(engine):
    """Nothing runs before the end, and a short circuit reads no further than without a guard."""
    source = Parts(["x", "1", "2"], ["3"])
    stream = engine.context.read(source).map(int).ignore(ValueError)
    assert source.items_read == 0
    assert stream.find_first().get() == 1
    assert source.parts_read == [0]


def test_a_guarded_step_may_be_read_twice_with_and_without_its_guard(engine):
    """The step itself stays what it was."""
    numbers = engine.stream(["1", "x"], 2).map(int)
    both = numbers.ignore(ValueError) + numbers.limit(1) + numbers.resolve(ValueError, lambda t, e: 0)

    assert both.to_list() == [1, 1, 1, 0]


def test_guards_give_the_same_everywhere():
    """For 1 to 8 partitions, empty ones, on both engines."""
    found = same_everywhere(lambda s: s.flat_map(digits).ignore(ValueError).map(str), TEXTS)

    assert found == ["1", "2", "3", "5"]


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda s: s, "Stream.of"),
        (lambda s: s.sorted(), r"\.sorted\(\)"),
        (lambda s: s.map(int).limit(3), r"\.limit\(3\)"),
        (lambda s: s.map_to_int(int).as_double_stream(), r"\.as_double_stream\(\)"),
    ],
)
@pytest.mark.parametrize("name", ["ignore", "resolve", "on_error"])
def test_a_step_that_runs_no_function_on_each_item_is_refused(build, shown, name):
    """At the call, with the step before."""
    more = {"ignore": {}, "resolve": {"fn": str}, "on_error": {"into": to_ilist("bad")}}[name]
    with pytest.raises(IllegalStateError, match=rf"\.{name}\(\) is about the step before it.*here it is .*{shown}"):
        getattr(build(Stream.of("a")), name)(ValueError, **more)


@pytest.mark.parametrize(
    "kinds", [None, "ValueError", int, KeyboardInterrupt, (), (ValueError, 1), ValueError("x"), [OSError]]
)
def test_what_is_no_class_of_exceptions_is_refused(kinds):
    """At the call."""
    with pytest.raises(TypeError, match="kinds must be a class of exceptions"):
        Stream.of("a").map(int).ignore(kinds)


def test_other_wrong_arguments_are_refused():
    """A reducer that is none, a function that is none."""
    stream = IntStream.of(1).map(abs)
    with pytest.raises(TypeError, match="into must be a reducer, such as to_ilist"):
        stream.on_error(ValueError, into="bad")
    with pytest.raises(TypeError, match="fn must be a function"):
        stream.resolve(ValueError, None)


@pytest.fixture
def told(capfd, engine):
    """What was written to stderr on a context that shows lines."""
    progress = engine.context.running_engine()._progress
    before, progress._asked = progress._asked, None
    yield lambda: [line for line in capfd.readouterr().err.splitlines() if line.startswith("dstream:")]
    progress._asked = before


def test_a_line_says_how_many_items_there_were(engine, told):
    """One for each guard that had any, with step and place, the kinds, and what became of the items."""
    numbers = engine.stream(["1", "x", "0", "y"], 2)
    stream = numbers.map(lambda t: 1 // int(t)).resolve(OSError, lambda t, e: 1).ignore((ValueError, ArithmeticError))
    stream.resolve(OSError, lambda t, e: 1).to_list()
    line = test_a_line_says_how_many_items_there_were.__code__.co_firstlineno + 3
    (said,) = told()

    assert said.startswith("dstream: .map(lambda) at ")
    assert said.endswith(
        f"test_recovering.py:{line}: 3 items failed with ValueError (2) or ZeroDivisionError (1) and were ignored"
    )


def test_a_line_for_one_item_and_none_for_none(engine, told):
    """Words for one; silence if nothing failed, and if the job failed."""
    engine.stream(["1", "x"], 2).map(int).resolve(ValueError, lambda t, e: 0).to_list()
    (said,) = told()
    assert said.endswith(": 1 item failed with ValueError and was resolved")

    engine.stream(["1"], 2).map(int).ignore(ValueError).to_list()
    with pytest.raises(ZeroDivisionError):
        engine.stream(["x", "0"], 1).map(int).ignore(ValueError).map(lambda n: 1 // n).to_list()
    assert told() == []


def test_no_line_for_who_wants_none(capfd):
    """`progress=False` is silent about this too."""
    with ds.connect(engine="local", progress=False) as context:
        context.stream(["x"]).map(int).ignore(ValueError).to_list()

    assert capfd.readouterr().err == ""


def test_guards_show_in_the_chain_and_in_the_stages(engine):
    """The call as the user wrote it, on both engines."""
    stream = engine.stream(["x"], 2).map(int).ignore((ValueError, OSError)).on_error(KeyError, into=to_ilist("bad"))

    assert repr(stream).endswith(".map(int).ignore((ValueError, OSError)).on_error(KeyError, into=to_ilist('bad'))")
    assert ".ignore((ValueError, OSError))" in stream.explain("dot")
