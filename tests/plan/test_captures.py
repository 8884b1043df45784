"""What functions capture is checked before anything runs; `check_captures` takes the plan, whatever the engine."""

from __future__ import annotations

import functools
import io
import threading
import warnings

import pytest

from collectors import collecting_and_then, counting, grouping_by, mapping, reducing, teeing, to_list, to_map
from dstream import Stream
from dstream.errors import LargeCaptureWarning, SerializationError
from dstream.gatherers import map_concurrent
from dstream.plan import Collect, rewrite
from dstream.plan.capture_checks import check_captures

LOCK = threading.Lock()


class Job:
    """A callable object with methods and attributes."""

    def __init__(self, **held):
        self.held = held

    def __call__(self, n):
        return n

    def run(self, n):
        return n


class Slotted:
    __slots__ = ("held",)


def refusal(fn):
    """Return the message with which a `map` of `fn` is refused."""
    with pytest.raises(SerializationError) as caught:
        check_captures(rewrite(Stream.of(1).map(fn)._node))
    return str(caught.value)


def functions():
    """Return functions that reach a lock, with how the message names the way to it."""
    lock, slotted = threading.Lock(), Slotted()
    slotted.held = lock
    job, file, generator = Job(lock=lock), io.TextIOWrapper(io.BytesIO()), (n for n in "ab")
    few, many = [1, [lock]], [*range(99), lock]
    nested = lambda n: lock  # noqa: E731 - a lambda that another one captures
    return {
        "closure": (lambda n: lock, "the variable 'lock', a lock ("),
        "global": (lambda n: LOCK, "the variable 'LOCK', a lock ("),
        "default": (lambda n, held=lock: held, "the variable 'held', a lock ("),
        "keyword default": (lambda n, *, held=lock: held, "the variable 'held', a lock ("),
        "closure in a closure": (lambda n: nested(n), "the variable 'lock', a lock ("),
        "function inside": (lambda n: (lambda: LOCK)(), "the variable 'LOCK', a lock ("),
        "partial": (functools.partial(lambda held, n: n, lock), "the variable 'held', a lock ("),
        "partial by keyword": (functools.partial(lambda n, held: n, held=lock), "the variable 'held', a lock ("),
        "partial of a partial": (functools.partial(functools.partial(nested)), "the variable 'lock', a lock ("),
        "bound method": (job.run, "the variable 'self', whose self.held['lock'] is a lock ("),
        "callable object": (job, "the variable 'self', whose self.held['lock'] is a lock ("),
        "attribute": (lambda n: job.held, "the variable 'job', whose job.held['lock'] is a lock ("),
        "slot": (lambda n: slotted, "the variable 'slotted', whose slotted.held is a lock ("),
        "method of a lock": (lock.acquire, "the variable 'self', a lock ("),
        "list": (lambda n: few, "the variable 'few', whose few[1][0] is a lock ("),
        "long list": (lambda n: many, "the variable 'many', whose many[99] is a lock ("),
        "file": (lambda n: file, "the variable 'file', a TextIOWrapper ("),
        "generator": (lambda n: generator, "the variable 'generator', a generator ("),
    }


@pytest.mark.parametrize("way", functions())
def test_what_cannot_be_pickled_is_named_by_its_variable(way):
    """However it is captured; with the line of the function, and why it cannot be pickled."""
    function, expected = functions()[way]
    message = refusal(function)

    assert expected in message
    assert "which cannot be pickled: " in message
    assert "test_captures.py:" in message


PLANS = {
    "filter": lambda s, fn: s.filter(fn)._node,
    "flat_map": lambda s, fn: s.flat_map(fn)._node,
    "map_multi": lambda s, fn: s.map_multi(fn)._node,
    "resolve": lambda s, fn: s.map(int).resolve(ValueError, fn)._node,
    "map_concurrent": lambda s, fn: s.gather(map_concurrent(2, fn))._node,
    "resolve of calls": lambda s, fn: s.gather(map_concurrent(2, int)).resolve(ValueError, fn)._node,
    "distinct": lambda s, fn: s.distinct(fn)._node,
    "sorted": lambda s, fn: s.sorted(fn)._node,
    "take_while": lambda s, fn: s.take_while(fn)._node,
    "drop_while": lambda s, fn: s.drop_while(fn)._node,
    "behind sorted and limit": lambda s, fn: s.sorted().limit(3).map(str).map(fn)._node,
    "in a part": lambda s, fn: (s + s.map(fn)).map(str)._node,
    "grouping_by": lambda s, fn: Collect(s._node, grouping_by(fn)),
    "downstream": lambda s, fn: Collect(s._node, grouping_by(len, mapping(fn, to_list()))),
    "finisher": lambda s, fn: Collect(s._node, collecting_and_then(to_list(), fn)),
    "teeing": lambda s, fn: Collect(s._node, teeing(counting(), counting(), fn)),
    "merge": lambda s, fn: Collect(s._node, to_map(len, len, fn)),
    "reducing": lambda s, fn: Collect(s._node, reducing(fn)),
    "iterate": lambda s, fn: (s + Stream.iterate(0, fn)).map(str)._node,
    "has_next": lambda s, fn: Stream.iterate(0, fn, abs)._node,
    "generate": lambda s, fn: Stream.generate(fn)._node,
}


@pytest.mark.parametrize("place", PLANS)
def test_every_function_of_a_plan_is_looked_at(place):
    """Also of steps behind others that need a job of their own, of collectors and of sources."""
    with pytest.raises(SerializationError, match="'LOCK'"):
        check_captures(rewrite(PLANS[place](Stream.of("a"), lambda *items: LOCK)))


def test_what_stays_in_the_caller_may_capture_anything():
    """The actions of `peek`, the items themselves."""
    check_captures(rewrite(Stream.of(LOCK).peek(lambda n: LOCK)._node))


def test_the_message_names_the_step():
    """Which of how many, with its line."""
    with pytest.raises(SerializationError, match=r"^step 3 of 4: \.map\(lambda\) at .*: the function at .* captures"):
        check_captures(rewrite(Stream.of(1).map(str).map(lambda n: LOCK).filter(bool)._node))


def test_a_context_a_stream_and_a_collection_are_named(local_context):
    """Wherever they hide, with what to do instead."""
    ctx, other, ages = local_context, Stream.of(1), local_context.get_map("ages")
    job = Job(context=ctx)

    assert "the variable 'ctx', a Context, which cannot be used inside a function that runs on" in refusal(
        lambda n: ctx.engine
    )
    assert "whose job.held['context'] is a Context, which" in refusal(lambda n: job.held)
    assert "the variable 'other', a Stream, which" in refusal(lambda n: other.to_list())
    assert "the variable 'ages', an IStreamMap, which" in refusal(lambda n: ages[n])
    assert "let the function capture the result" in refusal(lambda n: ages[n])


@pytest.mark.parametrize("name", ["SparkSession", "SparkContext", "DataFrame"])
def test_spark_is_named(name):
    """Its session, its context, its tables."""
    kind = type(name, (), {"__module__": "pyspark.sql.classic"})
    spark = kind()

    assert f"the variable 'spark', a {name}, which" in refusal(lambda n: spark)
    assert "take the plain values out of it" in refusal(lambda n: spark)


def warned(fn):
    """Return the warnings about a `map` of `fn`, and the line of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_captures(rewrite(Stream.of(1).map(fn).filter(fn)._node))
    return caught


LARGE = {
    "bytes": lambda: bytes(11 * 2**20),
    "text": lambda: "x" * 11 * 2**20,
    "numbers": lambda: list(range(2_000_000)),
    "dict": lambda: dict.fromkeys(range(120000), "x" * 100),
    "objects": lambda: [(f"{n:0100}", n) for n in range(120_000)],
    "array": lambda: __import__("numpy").zeros(2_000_000),
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_object_is_named_once(kind):
    """A warning with the variable and its size, at the line of the call, however many functions capture it."""
    table = LARGE[kind]()
    (warning,) = warned(lambda n: table)

    assert (warning.category, warning.filename) == (LargeCaptureWarning, __file__)
    assert "captures the variable 'table', of 1" in str(warning.message)
    assert " MB; it travels to every task." in str(warning.message)


def test_a_large_object_in_an_attribute_is_named():
    """By the object that holds it."""
    job = Job(table=bytes(11 * 2**20))

    assert "captures the variable 'job', of 11 MB" in str(warned(lambda n: job)[0].message)
    assert "captures the variable 'self', of 11 MB" in str(warned(job.run)[0].message)


def test_what_is_not_large_does_not_warn():
    """Nor do modules, functions that the workers import, and what only the source holds."""
    table = bytes(9 * 2**20)

    assert warned(lambda n: (table, warnings, functions)) == []
    check_captures(rewrite(Stream.of(bytes(11 * 2**20)).map(len)._node))


def test_a_large_object_is_pickled_once_at_most():
    """The check looks at it by type where it can."""
    pickled = []

    class Counting:
        def __reduce__(self):
            pickled.append(1)
            return str, ()

    held = [Counting()] * 20
    warned(lambda n: held)
    assert len(pickled) == 1


def test_a_variable_that_is_not_there_yet_is_no_problem():
    """A function may be defined before what it uses is."""

    def later(n):
        return helper

    check_captures(rewrite(Stream.of(1).map(later)._node))
    helper = len
    check_captures(rewrite(Stream.of(1).map(later)._node))


def test_a_function_that_refers_to_itself_is_no_problem():
    """The walk looks at each object once."""

    def down(n):
        return n and down(n - 1)

    knot = []
    knot.append(knot)
    check_captures(rewrite(Stream.of(1).map(down).filter(lambda n: knot)._node))


def test_a_list_that_contains_itself_is_searched_once():
    """It is an argument of a collector of ours, whose functions are looked for first; those in it are found."""
    knot = [object()]
    knot.append(knot)
    check_captures(rewrite(Collect(Stream.of(1)._node, reducing(knot, max))))

    knot.append(lambda n: LOCK)
    with pytest.raises(SerializationError, match="the variable 'LOCK', a lock"):
        check_captures(rewrite(Collect(Stream.of(1)._node, reducing(knot, max))))
