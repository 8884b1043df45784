"""Failures: the user's own exception arrives, with the step, the place and the item."""

from __future__ import annotations

import inspect
import threading

import pytest

import dstream as ds
from collectors import grouping_by, mapping, to_list
from dstream.errors import DStreamError
from dstream.failures import failure, near


class NeedsTwo(Exception):
    """An exception whose `__init__` takes other arguments than `args` holds."""

    def __init__(self, code, *, detail):
        super().__init__(f"code {code}")
        self.code = code
        self.detail = detail


class HoldsALock(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class HoldsALockInArgs(Exception):
    """An exception whose arguments cannot be pickled."""

    def __init__(self, text):
        super().__init__(text, threading.Lock())


class FailingSplit:
    """Reads one item, then fails."""

    ordered = bounded = True
    in_caller = False

    def splits(self, parallelism):
        return [self]

    def read(self):
        yield 1
        raise ConnectionResetError("the other side hung up")


def inverse(n):
    """Fail on 0."""
    return 1 // n


def fail_midway(n):
    """Give an item, then fail."""
    yield n
    raise KeyError(n)


def compare(left, right):
    """Fail on 0."""
    return left // right


def collected(stream):
    """Fail inside a collector, downstream of a grouping."""
    return stream.collect(grouping_by(bool, mapping(inverse, to_list())))


FAILING = {
    "map": (lambda s: s.map(inverse).to_list(), ZeroDivisionError),
    "map_to_int": (lambda s: s.map_to_int(inverse).sum(), ZeroDivisionError),
    "filter": (lambda s: s.filter(inverse).to_list(), ZeroDivisionError),
    "flat_map": (lambda s: s.flat_map(fail_midway).to_list(), KeyError),
    "map_multi": (lambda s: s.map_multi(lambda n, emit: emit(inverse(n))).to_list(), ZeroDivisionError),
    "sorted": (lambda s: s.sorted(key=inverse).to_list(), ZeroDivisionError),
    "sorted comparison": (lambda s: s.map(lambda n: n or "x").sorted().to_list(), TypeError),
    "sorted limit": (lambda s: s.sorted(key=inverse).limit(1).to_list(), ZeroDivisionError),
    "distinct": (lambda s: s.distinct(key=inverse).to_list(), ZeroDivisionError),
    "take_while": (lambda s: s.take_while(lambda n: inverse(n) >= 0).to_list(), ZeroDivisionError),
    "drop_while": (lambda s: s.drop_while(lambda n: inverse(n) >= 0).to_list(), ZeroDivisionError),
    "peek": (lambda s: s.peek(inverse).to_list(), ZeroDivisionError),
    "reduce": (lambda s: s.reduce(compare), ZeroDivisionError),
    "min": (lambda s: s.min(key=inverse), ZeroDivisionError),
    "any_match": (lambda s: s.any_match(lambda n: inverse(n) > 1), ZeroDivisionError),
    "collect": (collected, ZeroDivisionError),
    "collect 3": (lambda s: s.collect(list, lambda held, n: held.append(inverse(n)), list.extend), ZeroDivisionError),
    "for_each_partition": (lambda s: s.for_each_partition(lambda ns: list(map(inverse, ns))), ZeroDivisionError),
}


@pytest.mark.parametrize("operation", FAILING)
def test_an_exception_arrives_with_its_own_type_and_names_its_step(engine, operation):
    """Wherever a function fails, the exception keeps its type and says which step of the chain it was."""
    run, kind = FAILING[operation]
    numbers = engine.stream([2, 3, 0, 5], 2)

    with pytest.raises(kind) as caught:
        run(numbers)
    assert type(caught.value) is kind
    name = {"any_match": ".any_match(", "collect 3": ".collect("}.get(operation, f".{operation.split()[0]}(")
    assert [note.partition(":")[0] for note in caught.value.__notes__] == ["What happened", "Where", "What to do"]
    assert f", {name}" in caught.value.__notes__[1].splitlines()[0]


def test_notes_name_step_place_and_item(engine):
    """The notes say which step of how many, at which line of the user's, on which item."""
    numbers = engine.stream([2, 0], 2).filter(lambda n: n < 9)
    place = near(__file__, inspect.currentframe().f_lineno + 1)
    failing = numbers.map(inverse)

    with pytest.raises(ZeroDivisionError, match="division") as caught:
        failing.distinct().to_list()
    happened, where, _ = caught.value.__notes__
    on_a_worker = ", on a Spark worker" * (engine.name == "spark")
    assert happened.endswith(f', in "return 1 // n"{on_a_worker}')
    assert where.splitlines()[0] == f"Where: step 3 of 4, .map(inverse) at {place}, on the item 0"


def test_failure_holds_step_place_and_item_for_programs(engine):
    """`dstream.failure(error)` gives them as objects; of an exception from elsewhere it knows nothing."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([2, 0], 2).map(inverse).count()
    known = ds.failure(caught.value)

    assert (known.item, known.step.label, known.step.position, known.step.total) == (0, ".map(inverse)", 2, 3)
    assert (known.where.file, type(known.where.line)) == (__file__, int)
    assert ds.failure(ValueError()) is None


def test_long_items_are_cut_in_notes(engine):
    """The note shows 200 characters of an item; the item itself may be whole."""
    with pytest.raises(TypeError) as caught:
        engine.stream(["x" * 5000], 2).map(inverse).to_list()
    where = caught.value.__notes__[1].splitlines()[0]

    assert where.endswith("on the item '" + "x" * 199 + "...")


@pytest.mark.on_spark("make")
@pytest.mark.parametrize(
    "make",
    [
        lambda: NeedsTwo(7, detail="d"),
        lambda: UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
        lambda: FileNotFoundError(2, "gone", "f.txt"),
    ],
    ids=["keywords", "five arguments", "file"],
)
def test_exceptions_with_a_strange_init_arrive_whole(engine, make):
    """Type, text and attributes survive, whatever `__init__` wants."""

    def fail(_):
        raise make()

    with pytest.raises(type(make())) as caught:
        engine.stream([1], 2).map(fail).to_list()
    arrived, expected = caught.value, make()
    assert (type(arrived), str(arrived)) == (type(expected), str(expected))
    assert {**vars(arrived), **vars(expected)} == vars(arrived)


@pytest.mark.on_spark("kind")
@pytest.mark.parametrize("kind", [HoldsALock, HoldsALockInArgs])
def test_exceptions_that_cannot_be_pickled_keep_their_type(engine, kind):
    """What cannot travel is left out; type, text and notes arrive."""

    def fail(_):
        raise kind("no way")

    with pytest.raises(kind, match="no way") as caught:
        engine.stream([1], 2).map(fail).to_list()
    assert ds.failure(caught.value).item == 1


def test_exception_of_a_class_inside_a_function_arrives(engine):
    """A class that only the caller's process knows is the same class when it comes back."""

    class Local(ValueError):
        pass

    def fail(_):
        raise Local("here")

    with pytest.raises(Local, match="here"):
        engine.stream([1], 2).map(fail).to_list()


def test_a_source_that_fails_while_it_is_read_lets_its_exception_out(engine):
    """The exception of a source names the source."""
    with pytest.raises(ConnectionResetError, match="hung up") as caught:
        engine.context.read(FailingSplit()).map(str).to_list()

    assert "step 1 of 2, read(" in caught.value.__notes__[1]


def test_the_cause_and_the_remote_traceback_are_not_lost(spark_context):
    """What the worker saw is kept as text beside the exception."""
    with pytest.raises(ZeroDivisionError) as caught:
        spark_context.stream([0], 1).map(inverse).to_list()

    assert "return 1 // n" in ds.failure(caught.value).remote_traceback


def test_a_failure_leaves_the_context_usable(engine):
    """After an exception the same stream machinery runs on."""
    numbers = engine.stream([1, 0], 2)
    with pytest.raises(ZeroDivisionError):
        numbers.map(inverse).to_list()

    assert numbers.map(str).to_list() == ["1", "0"]


@pytest.mark.on_spark("make")
@pytest.mark.parametrize(
    "make", [lambda s: s.map(lambda _: next(iter(()))), lambda s: s.sorted(key=lambda _: next(iter(())))]
)
def test_a_stop_iteration_is_never_taken_for_the_end(engine, make):
    """A `StopIteration` that escapes from a function is an error, not the end of the stream."""
    with pytest.raises((StopIteration, RuntimeError)):
        make(engine.stream([1, 2], 1)).to_list()


@pytest.mark.parametrize(
    "make", [lambda s: s.map(lambda _: next(iter(()))), lambda s: s.join(s, on=lambda _: next(iter(())))]
)
def test_a_stop_iteration_names_its_step_and_item(engine, make):
    """Also if Python made a RuntimeError of it, as it does in what iterates."""
    with pytest.raises(RuntimeError) as caught:
        make(engine.stream([1], 2)).to_list()

    known = failure(caught.value)
    assert (known.step.position > 1, known.item) == (True, 1)


def test_a_supplier_that_raises_stop_iteration_fails(default_engine):
    """`generate` does not end in silence when its supplier runs dry: it is infinite."""
    with pytest.raises((StopIteration, RuntimeError)):
        ds.Stream.generate(lambda: next(iter(()))).limit(3).to_list()


def test_failures_of_dstream_itself_are_not_mistaken_for_the_users(engine):
    """A user's exception is no `DStreamError`."""
    with pytest.raises(ZeroDivisionError) as caught:
        engine.stream([0], 1).filter(inverse).count()

    assert not isinstance(caught.value, DStreamError)
