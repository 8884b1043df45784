"""`dstream.failure(error)`: what happened, where, what to do, and once more."""

from __future__ import annotations

import sys

import pytest

import dstream as ds
from collectors import counting, grouping_by, mapping, to_list
from dstream.errors import IllegalStateError
from reducers import to_ilist, to_imap


def inverse(n):
    """Fail on 0."""
    return 1 // n


def emit_inverse(n, emit):
    """Fail on 0, after one item."""
    emit(n)
    emit(inverse(n))


def failed(run):
    """Return the exception that `run` ends with."""
    with pytest.raises(ZeroDivisionError) as caught:
        run()
    return caught.value


REPLAYED = {
    "map": lambda s: s.map(inverse).to_list(),
    "map_to_int": lambda s: s.map_to_int(inverse).sum(),
    "filter": lambda s: s.filter(inverse).to_list(),
    "flat_map": lambda s: s.flat_map(lambda n: (inverse(m) for m in [n])).to_list(),
    "map_multi": lambda s: s.map_multi(emit_inverse).to_list(),
    "peek": lambda s: s.peek(inverse).to_list(),
    "distinct": lambda s: s.distinct(key=inverse).to_list(),
    "sorted": lambda s: s.sorted(key=inverse).to_list(),
    "sorted limit": lambda s: s.sorted(key=inverse).limit(1).to_list(),
    "take_while": lambda s: s.take_while(lambda n: inverse(n) >= 0).to_list(),
    "drop_while": lambda s: s.drop_while(lambda n: inverse(n) >= 0).to_list(),
    "any_match": lambda s: s.any_match(lambda n: inverse(n) > 1),
    "all_match": lambda s: s.all_match(lambda n: inverse(n) >= 0),
    "for_each": lambda s: s.for_each(inverse),
    "min": lambda s: s.min(key=inverse),
    "grouping": lambda s: s.collect(grouping_by(inverse)),
    "downstream": lambda s: s.collect(grouping_by(bool, mapping(inverse, to_list()))),
    "three functions": lambda s: s.collect(list, lambda held, n: held.append(inverse(n)), list.extend),
    "to_imap": lambda s: s.collect(to_imap("numbers", inverse, str)),
    "iterate": lambda s: list(s.map(inverse)),
    "partitions": lambda s: [list(items) for items in s.map(inverse).partitions()],
}


@pytest.mark.parametrize("operation", REPLAYED)
def test_replay_runs_the_step_on_the_item_here(engine, operation):
    """With the function of the caller's own: its frame is in the traceback, so that a debugger stops there."""
    error = failed(lambda: REPLAYED[operation](engine.stream([2, 3, 0, 5], 2)))
    known = ds.failure(error)

    assert known.item == 0
    again = failed(known.replay)
    frames = []
    traceback = again.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames[-1] == "inverse"


def test_replay_returns_what_the_step_gives(engine):
    """A function that fails on a worker only shows that."""
    calls = []

    def fail_once(n):
        if not calls:
            calls.append(n)
            raise ZeroDivisionError
        return [n, n]

    error = failed(lambda: engine.stream([7], 1).peek(fail_once).to_list())
    assert ds.failure(error).replay() == [7, 7]


UNKNOWN = {
    "reduce": (lambda s: s.reduce(lambda a, b: a // (a - a)), "no single item"),
    "accumulator": (lambda s: s.reduce(0, lambda a, b: 1 // (b - 5), max), "no single item"),
    "merge": (
        lambda s: s.collect(to_imap("m", lambda n: 1, lambda n: 1, lambda a, b: 1 // 0)),
        "merge was given 1 and 1",
    ),
    "partition": (lambda s: s.for_each_partition(lambda items: [inverse(n) for n in items]), "no single item"),
}


@pytest.mark.parametrize("operation", UNKNOWN)
def test_what_has_no_item_cannot_be_replayed(engine, operation):
    """The refusal says in which step it was, and why there is no item."""
    run, reason = UNKNOWN[operation]
    error = failed(lambda: run(engine.stream([2, 3, 0, 5], 2)))

    with pytest.raises(IllegalStateError, match=reason) as caught:
        ds.failure(error).replay()
    assert "step 2 of 2" in str(caught.value)


def test_an_item_that_is_too_large_to_travel_is_shown(spark_context):
    """It stays on the worker; how it begins does not."""
    error = failed(lambda: spark_context.stream([3], 1).map(lambda n: "x" * 200_000).map(lambda t: 1 // 0).count())

    assert "on the item 'xxxx" in error.__notes__[1]
    with pytest.raises(IllegalStateError, match="too large to come from the worker"):
        ds.failure(error).replay()


def test_a_reducer_is_replayed_without_writing(engine):
    """Its functions run on the item; the map stays as it is."""
    error = failed(lambda: engine.stream([1, 0], 1).collect(to_imap("replayed", lambda n: n, inverse)))

    failed(ds.failure(error).replay)
    assert dict(engine.context.get_map("replayed")) == {}


def test_a_failure_prints_as_its_three_parts(engine):
    """In a REPL it reads as the notes do."""
    error = failed(lambda: engine.stream([0], 1).map(inverse).to_list())

    assert repr(ds.failure(error)) == str(ds.failure(error)) == "\n".join(error.__notes__)
    assert len(error.__notes__) == 3


def test_failure_without_an_argument_is_that_of_the_last_exception(engine, monkeypatch):
    """The one that is being handled, or the one that the REPL showed last."""
    error = failed(lambda: engine.stream([0], 1).map(inverse).to_list())
    try:
        raise error
    except ZeroDivisionError:
        assert ds.failure() is ds.failure(error)

    assert ds.failure() is None
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert ds.failure() is ds.failure(error)


def test_failure_looks_behind_an_exception(engine):
    """Into what it was raised from, and into the members of a group."""
    error = failed(lambda: engine.stream([0], 1).map(inverse).to_list())
    raised_from = RuntimeError("mine")
    raised_from.__cause__ = error

    for behind in (raised_from, ExceptionGroup("many", [ValueError(), raised_from])):
        assert ds.failure(behind) is ds.failure(error)
    assert ds.failure(ValueError()) is None
    with pytest.raises(TypeError, match="error must be an exception, not str"):
        ds.failure("no")


def nested(n):
    """Run a stream inside of a function."""
    return ds.Stream.of(n, 0).map(inverse)


def test_the_failure_of_a_stream_inside_of_a_function_names_both(engine):
    """The step of the outer stream is to blame, on its item; the inner one stands below it."""
    error = failed(lambda: engine.stream([4], 2).flat_map(nested).to_list())
    known = ds.failure(error)
    happened, where, _ = error.__notes__

    assert (known.item, known.step.label, known.inner.item) == (4, ".flat_map(nested)", 0)
    assert happened.startswith("What happened: inverse raised ZeroDivisionError")
    assert "in it, step 2 of 2, .map(inverse)" in where.splitlines()[1]
    assert failed(known.replay) is not error


def test_the_failure_of_an_inner_stream_on_a_worker_names_its_function(local_context, spark_context):
    """The traceback here shows the outer function only: the stream inside runs on the default context."""
    ds.set_default_context(spark_context)
    try:
        error = failed(lambda: local_context.stream([4], 2).flat_map(nested).to_list())
    finally:
        ds.set_default_context(None)

    assert error.__notes__[0].startswith("What happened: inverse raised ZeroDivisionError")
    assert "on the item 4" in error.__notes__[1]


def test_the_users_own_notes_stay_before_ours(engine):
    """What the function said itself is not lost."""

    def noted(n):
        error = ZeroDivisionError(n)
        error.add_note("mine")
        raise error

    error = failed(lambda: engine.stream([4], 2).map(noted).to_list())
    assert error.__notes__[0] == "mine"
    assert [note[:5] for note in error.__notes__[1:]] == ["What ", "Where", "What "]


def test_collect_names_its_collector(engine):
    """In the step, as the user wrote it."""
    error = failed(lambda: engine.stream([0], 1).collect(grouping_by(inverse, counting())))

    assert ds.failure(error).step.label == ".collect(grouping_by(...))"
    assert counting().name == "counting()"


def test_a_list_reducer_runs_no_function(engine):
    """What fails there is the upstream, which can be replayed."""
    error = failed(lambda: engine.stream([0], 1).map(inverse).collect(to_ilist("failing")))

    assert ds.failure(error).step.label == ".map(inverse)"


@pytest.mark.on_spark("function")
@pytest.mark.parametrize("function", [sys.exit, lambda n: sys.exit(n)])
def test_a_function_that_ends_the_program_ends_that_of_the_caller(function, engine):
    """Not the worker, which would look like one that was killed."""
    with pytest.raises(SystemExit) as raised:
        engine.stream([3, 3, 3]).map(function).to_list()
    assert raised.value.code == 3
