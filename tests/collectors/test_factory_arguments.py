"""What every factory refuses at the call, on the user's line."""

import subprocess
import sys

import pytest

import collectors as c


class Sink:
    label, collector, job = "to_nowhere()", None, None

    def open(self, context):
        raise AssertionError("a factory refuses a reducer without opening it")


def wrapping(downstream):
    """Give each factory that takes a collector."""
    return {
        "mapping": lambda: c.mapping(str, downstream),
        "filtering": lambda: c.filtering(bool, downstream),
        "flat_mapping": lambda: c.flat_mapping(list, downstream),
        "collecting_and_then": lambda: c.collecting_and_then(downstream, len),
        "teeing": lambda: c.teeing(c.counting(), downstream, max),
        "all_of": lambda: c.all_of(c.counting(), downstream),
        "grouping_by": lambda: c.grouping_by(len, downstream),
        "grouping_by_concurrent": lambda: c.grouping_by_concurrent(len, downstream),
        "partitioning_by": lambda: c.partitioning_by(len, downstream),
    }


WRAPPING = list(wrapping(None))
NOT_CALLABLE = {
    "classifier": [lambda: c.grouping_by(5), lambda: c.grouping_by_concurrent(5)],
    "map_factory": [
        lambda: c.grouping_by(len, map_factory=5),
        lambda: c.grouping_by_concurrent(len, map_factory=5),
        lambda: c.to_map(len, len, map_factory=5),
        lambda: c.to_concurrent_map(len, len, map_factory=5),
    ],
    "predicate": [lambda: c.partitioning_by(5), lambda: c.filtering(5, c.to_list())],
    "factory": [lambda: c.to_collection(5)],
    "key": [
        lambda: c.to_map(5, len),
        lambda: c.min_by(5),
        lambda: c.max_by(5),
        lambda: c.top_n(1, 5),
        lambda: c.bottom_n(1, 5),
        lambda: c.sorting(5),
    ],
    "value": [lambda: c.to_concurrent_map(len, 5)],
    "merge": [lambda: c.to_unmodifiable_map(len, len, 5)],
    "x": [lambda: c.linear_trend(5, len)],
    "y": [lambda: c.linear_trend(len, 5)],
    "fn": [
        lambda: c.mapping(5, c.to_list()),
        lambda: c.flat_mapping(5, c.to_list()),
        lambda: c.collecting_and_then(c.to_list(), 5),
        lambda: c.teeing(c.to_list(), c.to_list(), 5),
        lambda: c.quantiles([0.5], 5),
        *[
            lambda name=name: getattr(c, name)(5)
            for name in c.__all__
            if name.startswith(("summ", "averag")) or name in ("variance", "stddev")
        ],
    ],
    "op": [lambda: c.reducing(5), lambda: c.reducing(0, 5)],
}


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in NOT_CALLABLE.items() for call in calls])
def test_what_cannot_be_called_is_refused(name, call):
    """The message names the argument."""
    with pytest.raises(TypeError, match=f"^{name} must be a function, not int$"):
        call()


@pytest.mark.parametrize("name", ["summing_int", "averaging_long", "summarizing_double", "to_collection", "sorting"])
def test_a_function_is_optional_only_where_the_name_is_pythons(name):
    """The typed forms need their function; `sorting`, `summing` and the like do without."""
    if name == "sorting":
        assert getattr(c, name)(None).collect([2, 1]) == [1, 2]
    else:
        with pytest.raises(TypeError, match="must be a function, not None"):
            getattr(c, name)(None)


@pytest.mark.parametrize("name", WRAPPING)
def test_a_reducer_cannot_be_downstream(name):
    """The message says why."""
    with pytest.raises(TypeError, match="a reducer is not a collector and cannot be downstream; Sink ends a stream"):
        wrapping(Sink())[name]()


@pytest.mark.parametrize("name", WRAPPING)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "NoneType"), (5, "int"), (c.counting, "function; counting is a function that")],
)
def test_downstream_must_be_a_collector(name, value, shown):
    """A factory that was not called gets a hint."""
    with pytest.raises(TypeError, match=f"must be a Collector, not {shown}"):
        wrapping(value)[name]()


def test_collectors_can_be_imported_first_and_load_nothing_heavy():
    """`from collectors import counting` works in a fresh process, without pyspark, numpy or sketches."""
    program = (
        "import sys; from collectors import counting; print(*{'pyspark', 'numpy', 'datasketches'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.stdout, result.stderr) == ("\n", "")


async def _awaited(item):
    return False


def _yielding(item):
    yield False


@pytest.mark.parametrize("factory", [c.partitioning_by, lambda fn: c.filtering(fn, c.counting())])
@pytest.mark.parametrize("fn", [_awaited, _yielding])
def test_predicates_that_would_not_run_are_refused(factory, fn):
    """A coroutine or a generator is true whatever the item is."""
    with pytest.raises(TypeError, match="predicate must give a result"):
        factory(fn)


@pytest.mark.parametrize("factory", [c.top_n, c.bottom_n])
def test_a_count_is_no_bool(factory):
    """As `limit(True)` is refused: what was meant is not known."""
    with pytest.raises(TypeError, match="n must be an int, not bool"):
        factory(True)


WITH_A_MAP = {
    "grouping_by": lambda factory: c.grouping_by(len, map_factory=factory),
    "grouping_by_concurrent": lambda factory: c.grouping_by_concurrent(len, map_factory=factory),
    "to_map": lambda factory: c.to_map(len, str, map_factory=factory),
    "to_concurrent_map": lambda factory: c.to_concurrent_map(len, str, map_factory=factory),
}


@pytest.mark.parametrize("kind", [list, tuple, set, str, bytearray, object])
@pytest.mark.parametrize("factory", WITH_A_MAP)
def test_a_map_factory_that_makes_no_mapping_is_refused_at_the_call(factory, kind):
    """A class shows what it makes before anything is collected."""
    with pytest.raises(TypeError, match=f"map_factory must make an empty mapping, as dict does, not a {kind.__name__}"):
        WITH_A_MAP[factory](kind)


@pytest.mark.parametrize("factory", WITH_A_MAP)
def test_what_a_map_factory_made_is_refused_if_it_is_no_mapping(factory):
    """A function shows it when it is called."""
    with pytest.raises(TypeError, match=r"map_factory must make an empty mapping, as dict does, but it gave \[\]"):
        WITH_A_MAP[factory](lambda: [].copy()).collect(["a"])


@pytest.mark.parametrize("factory", WITH_A_MAP)
def test_a_class_that_only_takes_keys_makes_a_mapping(factory):
    """It need not be one by name."""

    class Log:
        def __init__(self):
            self.keys = []

        def __setitem__(self, key, value):
            self.keys.append(key)

    assert WITH_A_MAP[factory](Log).collect(["a", "bb"]).keys == [1, 2]
