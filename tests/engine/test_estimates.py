"""The estimate of a compiled plan: seconds in this process and on Spark, and whether they follow from known sizes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import re
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dstream as ds
import sources
from collectors import counting, grouping_by, summing, to_list
from dstream import Stream
from dstream.connectors.dataframes import rows_of_table
from dstream.engine.auto import placement
from dstream.engine.auto.cost_model import COSTS, machine_scale
from dstream.engine.auto.estimates import Machine, MeasuredCosts, estimated
from dstream.engine.auto.placement import AutoSettings, placed
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.physical.graph import Last
from dstream.plan import Collect, Table, ToList, nothing_kept, rewrite
from dstream.plan.operations.pairs import HashJoin
from dstream.stream.objects import read
from dstream.windows import tumbling

FACTS = {"one task": ClusterFacts(1, 1, 2**22), "several tasks": ClusterFacts(4, 4, 2**22)}
MANY = 1_000_000
RUNNING = Machine(cores=4, spark="running")


@pytest.fixture(params=FACTS)
def facts(request):
    """The facts of both engines that run graphs."""
    return FACTS[request.param]


def called(item):
    """Return the item in a way that is no expression."""
    with contextlib.nullcontext():
        return item


def slow(item):
    """Return the item in another way that is no expression."""
    with contextlib.nullcontext():
        return item


def graph_of(stream, collector=None, facts=FACTS["one task"]):
    """Return the graph of a stream that is listed, or collected."""
    node = stream._node
    end = ToList(node) if collector is None else Collect(node, collector)
    return compiled(rewrite(end), facts)[0]


def estimate(stream, collector=None, facts=FACTS["one task"], machine=RUNNING, costs=None):
    """Return the estimate of a stream."""
    return estimated(graph_of(stream, collector, facts), machine, costs or MeasuredCosts())


def numbers(count=MANY):
    """Return a stream of `count` numbers."""
    return Stream.from_iterable(range(count))


def objects(count=100_000):
    """Return a stream of so many tuples."""
    return Stream.from_iterable([(1, "a")] * count)


def files(tmp_path, maker, size):
    """Return a stream of a sparse file."""
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(size)
    return read(getattr(sources, maker)(str(path)), "file", None)


def test_estimates_grow_with_the_items(facts):
    """Ten times the items cost about ten times as much, on both sides."""
    small, large = (estimate(objects(count).map(called), facts=facts) for count in (100_000, 1_000_000))

    assert 8 < large.seconds_here / small.seconds_here < 12
    assert 5 < large.seconds_there / small.seconds_there < 12
    assert (small.items, large.items) == (100_000, 1_000_000)


def test_nothing_costs_what_a_plan_costs(facts):
    """An empty plan takes a fraction of a millisecond here, and a job there."""
    found = estimate(Stream.from_iterable([]).map(called), facts=facts)

    assert found.seconds_here < 0.001 < COSTS.job <= found.seconds_there
    assert (found.is_sure, found.items) == (True, 0)


@pytest.mark.parametrize(
    "stream",
    [numbers(10**12), objects().map(called), Stream.iterate(1, abs), Stream.from_iterable(itertools.count()).map(abs)],
    ids=repr,
)
def test_a_limit_asks_for_little(stream, facts):
    """Whatever is behind the first items costs nothing, and its size needs not be known."""
    found = estimate(stream.limit(10), facts=facts)

    assert found.seconds_here < 0.002
    assert found.is_sure


def test_a_limit_of_a_large_file_asks_for_little(tmp_path, facts):
    """A file of a gigabyte is read as far as ten lines need it."""
    assert estimate(files(tmp_path, "text_files", 10**9).limit(10), facts=facts).seconds_here < 0.002


def test_a_limit_behind_a_sort_asks_for_everything(facts):
    """The first item is known when all are sorted."""
    limited, all_items = (estimate(each, facts=facts) for each in (_sorted().limit(1), _sorted()))

    assert limited.seconds_here > all_items.seconds_here / 4
    assert limited.is_sure


def _sorted():
    return objects().sorted(key=called)


def test_a_limit_behind_a_filter_is_not_sure(facts):
    """How many items have to be read for the first ones, only a run can tell."""
    assert not estimate(numbers().filter(lambda n: n > 10).limit(3), facts=facts).is_sure
    assert estimate(numbers().filter(lambda n: n > 10), facts=facts).is_sure


@pytest.mark.parametrize(
    "make",
    [
        lambda: Stream.from_iterable(iter([1])),
        lambda: Stream.iterate(1, abs, bool),
        lambda: Stream.from_iterable(iter([1])).sorted(key=called),
        lambda: numbers() + Stream.from_iterable(iter([1])),
        lambda: numbers().join(Stream.from_iterable(iter([1])), on=called),
        lambda: read(sources.sql_rows("sqlite:///missing.db", "SELECT 1"), "sql", None),
        lambda: read(sources.text_files("missing.txt"), "files", None).map(called),
    ],
)
def test_unknown_sizes_are_not_sure(make, facts):
    """Such plans begin in this process, where items are counted as they come."""
    found = estimate(make(), facts=facts)

    assert not found.is_sure
    assert math.isfinite(found.seconds_here + found.seconds_there)
    assert "unknown" not in estimate(numbers()).why


def test_lowered_steps_cost_nanoseconds_and_calls_their_default(facts):
    """An expression over columns is a hundred times as cheap as a call."""
    total = summing(lambda n: n)
    base = estimate(numbers(), total, facts).seconds_here
    lowered = estimate(numbers().map(lambda n: n * 2 + 1), total, facts).seconds_here - base
    by_call = estimate(numbers().map(called), total, facts).seconds_here - base

    assert lowered < 20e-9 * MANY
    assert by_call > COSTS.called * MANY
    assert by_call > 20 * lowered


def test_measured_functions_cost_what_they_took(facts):
    """A function that took a millisecond for each item does so in the next plan, and in no other function's."""
    costs, stream = MeasuredCosts(), objects(1000).map(slow)
    before = estimate(stream, facts=facts, costs=costs)
    _took(costs, graph_of(stream, facts=facts), 1000, 1.0)

    after = estimate(objects(5000).map(slow), facts=facts, costs=costs)
    assert before.seconds_here < 0.01
    assert 4.9 < after.seconds_here < 5.3
    assert estimate(objects(5000).map(called), facts=facts, costs=costs).seconds_here < 0.05


def _took(costs, graph, items, seconds):
    assert isinstance(graph.ending, Last)
    costs.took(graph.ending.vertex, items, seconds)


def test_measured_functions_are_shared_by_the_cores_of_spark():
    """A function that takes long costs less on Spark, where several tasks call it at the same time."""
    costs, stream = MeasuredCosts(), objects(100_000).map(slow)
    _took(costs, graph_of(stream), 1000, 1.0)

    found = estimate(stream, costs=costs)
    assert 99 < found.seconds_here < 101
    assert 31 < found.seconds_there < 34


def test_measured_functions_count_for_what_a_filter_leaves_out():
    """The time is that of an item which is read, whatever becomes of it."""
    costs, stream = MeasuredCosts(), objects(1000).filter(slow).map(called)
    _took(costs, graph_of(stream), 1000, 1.0)

    assert 0.9 < estimate(stream, costs=costs).seconds_here < 1.1


def test_measured_functions_are_found_again_in_other_lambdas_of_the_same_code():
    """A function that a call makes anew has the code of the one before."""
    costs = MeasuredCosts()

    def stream():
        return objects(1000).map(lambda item: called(item) if item else None or print())

    _took(costs, graph_of(stream()), 1000, 1.0)
    assert estimate(stream(), costs=costs).seconds_here > 0.9


def test_measured_costs_follow_what_changes():
    """The newest run counts as much as all before it."""
    costs, graph = MeasuredCosts(), graph_of(objects(1000).map(slow))
    for seconds in (1.0, 1.0, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001):
        _took(costs, graph, 1000, seconds)

    assert estimate(objects(1000).map(slow), costs=costs).seconds_here < 0.02


def test_measured_costs_are_of_functions_that_are_called():
    """Nothing is recorded of expressions in columns, which have constants, nor of a run that read no item."""
    costs = MeasuredCosts()
    _took(costs, graph_of(numbers().map(lambda n: n + 1)), 10, 5.0)
    _took(costs, graph_of(objects().map(slow)), 0, 5.0)

    assert not costs


def test_a_grouping_by_a_called_function_is_measured(facts):
    """The functions of a collector belong to the vertex that collects."""
    costs, by_call = MeasuredCosts(), grouping_by(slow, counting())
    graph = graph_of(objects(1000), by_call)
    _took(costs, graph, 1000, 1.0)

    assert 0.9 < estimate(objects(1000), by_call, facts, costs=costs).seconds_here < 1.1


_PATTERN = re.compile("a+b")


def _total(n):
    total = 0
    for each in range(n):
        total += each
    return total


_UNBOUNDED = [lambda n: sum(i * i for i in range(n)), math.factorial, lambda n: 3**n, lambda n: 1 << n, _total]
_BOUNDED = [
    lambda n: n**2, lambda n: sum(n * i for i in range(3)), lambda n: n.value, lambda n: n["a"].lower(),
    lambda n: [each.lower() for each in n.split()],
]  # fmt: skip


@pytest.mark.parametrize("fn", [*_UNBOUNDED, lambda n: _PATTERN.search(n), json.loads])
def test_an_expression_whose_cost_nothing_tells_is_measured(fn):
    """Such as a loop over a range, a power, or what a library does, in a key or in a collector."""
    assert not estimate(objects().sorted(key=fn)).is_measured
    assert not estimate(objects(), grouping_by(fn, to_list())).is_measured


@pytest.mark.parametrize("fn", _BOUNDED)
def test_an_expression_costs_what_its_operators_do(fn):
    """Also before its first run."""
    assert estimate(objects().sorted(key=fn)).is_measured
    assert estimate(objects().map(fn)).is_measured


@pytest.mark.parametrize("fn", _UNBOUNDED[::2])
def test_a_step_whose_cost_nothing_tells_is_measured(fn):
    """As a key is."""
    assert not estimate(objects().map(fn)).is_measured


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: objects().sorted(key=called), "Sorted"),
        (lambda: objects().distinct(), "Distinct"),
        (lambda: objects().join(objects(), on=lambda pair: pair[0]), "Join"),
        (lambda: objects().zip(objects()), "Zip"),
        (lambda: objects().sorted(key=called).limit(3), "Top"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_operations_on_all_items_cost_their_constants(make, name, facts):
    """Here for each item that they read, there for at least one more stage."""
    plain, found = estimate(objects(), facts=facts), estimate(make(), facts=facts)

    cost = COSTS.steps[name].item * 100_000
    reads = 2 if name in ("Join", "Zip") else 1
    returned = COSTS.pickled_object * 100_000
    assert found.seconds_here > plain.seconds_here - returned + reads * cost * 0.9
    assert found.seconds_there > COSTS.job + COSTS.stage
    assert found.is_sure


def test_a_hash_join_costs_both_sides(facts):
    """The right side is computed before the first item of the left one passes."""

    def joined(left, right):
        node = HashJoin(left._node, right._node, left_key=called, right_key=called)
        return estimated(compiled(rewrite(ToList(node)), facts)[0], RUNNING, MeasuredCosts())

    small, large = objects(10), objects(100_000)
    of_right, of_left = joined(small, large), joined(large, small)
    assert min(of_right.seconds_here, of_left.seconds_here) > 100_000 * COSTS.copied
    assert not joined(small, Stream.from_iterable(iter([1]))).is_sure


def test_a_shuffle_costs_spark_more_than_this_process():
    """With one core, Spark does the same work and moves the items besides."""
    found = estimate(objects().distinct(), machine=dataclasses.replace(RUNNING, cores=1))

    moved = 100_000 * (COSTS.shuffled + COSTS.pickled_object)
    assert found.seconds_there > found.seconds_here + moved


def test_the_first_items_are_found_by_one_task(facts):
    """More cores do not help a limit."""
    stream = objects(1_000_000).map(called).limit(500_000)
    few, many = (dataclasses.replace(RUNNING, cores=cores) for cores in (1, 8))

    assert estimate(stream, machine=few, facts=facts) == estimate(stream, machine=many, facts=facts)


def test_groups_in_columns_cost_less_than_objects(facts):
    """Numbers are counted in columns, tuples one by one."""
    in_columns = estimate(numbers(100_000), grouping_by(lambda n: n % 7, counting()), facts)
    one_by_one = estimate(objects(100_000), grouping_by(lambda pair: pair[0], counting()), facts)

    assert in_columns.seconds_here * 3 < one_by_one.seconds_here


@pytest.mark.parametrize("maker", ["text_files", "csv_rows", "json_lines", "avro_records", "files"])
def test_files_cost_by_their_bytes_and_format(tmp_path, maker, facts):
    """Each byte is read, and each item is made."""
    found = estimate(files(tmp_path, maker, 10**8).map(called), counting(), facts)

    cost = COSTS.formats[maker]
    expected = cost.byte * 10**8 + (cost.item + COSTS.called) * 10**8 / cost.item_bytes
    assert found.seconds_here == pytest.approx(expected, rel=0.25)
    assert (found.why, found.is_sure) == ("100.0 MB of 'data'", True)
    assert found.seconds_there < max(found.seconds_here, 2 * COSTS.job)


def test_rows_cost_seconds_where_lines_cost_tenths(tmp_path):
    """The formats differ as much as their parsers do."""
    text, rows = (
        estimate(files(tmp_path, maker, 10**8).map(called), counting()) for maker in ("text_files", "csv_rows")
    )

    assert 0.3 < text.seconds_here < 3 < rows.seconds_here < 30


def test_columns_of_parquet_cost_less_than_its_rows(tmp_path, facts):
    """A sum of a column makes no objects."""
    pq.write_table(pa.table({"x": range(100_000), "y": range(100_000)}), tmp_path / "a.parquet")
    rows = read(sources.parquet_rows(str(tmp_path / "a.parquet")), "rows", None)

    in_columns = estimate(rows, summing(lambda row: row["x"]), facts)
    one_by_one = estimate(rows.map(called), counting(), facts)
    assert in_columns.seconds_here * 10 < one_by_one.seconds_here
    assert (in_columns.items, in_columns.is_sure) == (100_000, True)
    assert re.fullmatch(r".* [kM]B of 'a.parquet'", in_columns.why)


def test_tables_of_arrow_are_columns():
    """Their rows are here, and in columns."""
    rows = read(rows_of_table(pa.table({"x": range(100_000)})), "rows", None)

    assert estimate(rows, summing(lambda row: row["x"])).seconds_here < 0.3


def test_collections_cost_what_their_storage_knows(tmp_path):
    """A lake says its rows and bytes, memory its entries."""
    with ds.connect(engine="local", storage=tmp_path) as lake, ds.connect(engine="local", storage="memory:") as memory:
        for ctx in (lake, memory):
            ctx.get_map("ages").update({f"name {number}": number for number in range(1000)})
            found = estimate(ctx.get_map("ages").stream().map(called))
            assert found.is_sure
            assert 0.0005 < found.seconds_here < 0.02


def test_tables_of_spark_are_for_spark():
    """Nothing here reads a DataFrame."""
    found = estimated(compiled(rewrite(ToList(Table([]))), FACTS["one task"])[0], RUNNING, MeasuredCosts())

    assert (found.seconds_here, found.is_sure) == (math.inf, False)
    assert found.why == "from_df(list) is on Spark"


def test_the_largest_input_is_the_reason(facts):
    """Of several sources that is named which costs most."""
    stream = objects(10).join(numbers(50_000) + objects(20_000), on=called)

    assert estimate(stream, facts=facts).why.startswith("20,000 items of ")


def test_more_cores_help_large_work_alone():
    """A small list is one task, however many cores there are."""
    large, small = objects(1_000_000).map(called).map(called), objects(1000).map(called).map(called)
    few, many = (dataclasses.replace(RUNNING, cores=cores) for cores in (1, 8))

    assert estimate(large, machine=few).seconds_there > 1.2 * estimate(large, machine=many).seconds_there
    assert estimate(small, machine=few) == estimate(small, machine=many)


def test_slow_machines_take_longer():
    """The constants are those of one machine."""
    quick, slow = (estimate(objects(), machine=dataclasses.replace(RUNNING, scale=scale)) for scale in (1.0, 2.0))

    assert slow.seconds_here == pytest.approx(2 * quick.seconds_here)
    assert slow.seconds_there == pytest.approx(2 * quick.seconds_there)
    assert 0.1 <= machine_scale() <= 10


@pytest.mark.parametrize(("spark", "seconds"), [("running", 0.0), ("startable", COSTS.start), ("absent", math.inf)])
def test_a_machine_knows_how_long_spark_starts(spark, seconds):
    """Without Java for ever."""
    assert Machine(spark=spark).start_seconds() == seconds


def test_a_stream_that_is_added_to_itself_is_walked_once(facts):
    """2**60 times a number is estimated like any other plan."""
    stream = Stream.of(1)
    for _ in range(60):
        stream = stream + stream

    found = estimate(stream.map(called), facts=facts)
    assert found.seconds_here > 1e9


def test_long_plans_are_estimated(facts):
    """Thousands of steps and sorts need no deep stack."""
    stream = numbers(10)
    for _ in range(300):
        stream = stream.map(called).distinct()
    for _ in range(3000):
        stream = stream.map(called)

    assert estimate(stream, facts=facts).is_sure


def test_estimates_of_small_plans_take_less_than_a_fifth_of_a_millisecond():
    """Each run waits for one."""
    graph = graph_of(objects(10).map(called).filter(lambda pair: pair[0] > 1).sorted(key=called).limit(3))

    def seconds():
        start = time.perf_counter()
        estimated(graph, RUNNING, costs)
        return time.perf_counter() - start

    costs = MeasuredCosts()
    assert min(seconds() for _ in range(50)) < 0.0002 * machine_scale()


def test_estimates_run_nothing(facts):
    """No iterator is read, and no function is called."""
    items, ran = iter("abc"), []

    estimate(Stream.from_iterable(items).map(ran.append).sorted(key=ran.append), facts=facts)
    assert (next(items), ran) == ("a", [])


def test_calls_that_columns_do_not_have_cost_more_than_operators(tmp_path, facts):
    """An expression with a pattern is evaluated in a loop, where the search takes most of the time."""
    lines = files(tmp_path, "text_files", 10**8)
    searched, compared = (
        estimate(lines.map(fn), counting(), facts).seconds_here
        for fn in (lambda line: re.search("a+", line) is None, lambda line: line < "a")
    )

    assert searched > compared + COSTS.library_call * 10**6


def test_measured_functions_cost_in_plans_that_read_the_same_kind_of_source(tmp_path):
    """A function is quick behind a range, and what reads rows before it is not."""
    costs = MeasuredCosts()
    _took(costs, graph_of(objects(1000).map(slow)), 1000, 1.0)

    assert estimate(objects(1000).map(slow), costs=costs).is_measured
    assert not estimate(numbers(1000).map(slow), costs=costs).is_measured
    assert not estimate(files(tmp_path, "text_files", 10**5).map(slow), costs=costs).is_measured


def test_plans_that_surely_end_soon_run_in_one_task():
    """They need not move, and nothing is shuffled; what may take long, or nobody has measured, can move."""

    def parallelism(stream, spark="running"):
        end = rewrite(ToList(stream._node))
        machine = Machine(cores=4, spark=spark)
        facts = placed(end, nothing_kept, lambda: machine, MeasuredCosts(), AutoSettings()).facts
        return facts.parallelism

    assert parallelism(objects(20_000).sorted()) == 1
    assert parallelism(objects(1_000_000).sorted()) == 4
    assert parallelism(objects(300_000).sorted(), spark="startable") == 1
    assert parallelism(objects(20_000).map(called).sorted()) == 4
    assert parallelism(Stream.from_iterable(iter("abc")).sorted()) == 4


def test_a_side_of_a_join_is_sent_whole_where_a_shuffle_costs_more():
    """Each of several tasks makes a table of it; memory bounds what one of them holds."""
    facts = ClusterFacts(4, 4, 16 * 2**20)

    assert [facts.largest_sent(tasks) >> 20 for tasks in (0, 1, 2, 3, 100)] == [4, 16, 16, 4, 4]
    assert [facts.largest_sent(3, size << 20) >> 20 for size in (1, 20, 1000)] == [4, 10, 16]
    assert ClusterFacts(4, 4, 100).largest_sent(1) == 100


def test_the_memory_of_a_task_bounds_what_is_sent_to_each():
    """A task has no file for a side that it got whole."""

    def largest(memory):
        end, machine = rewrite(ToList(objects(20_000).join(objects(20_000))._node)), Machine(cores=4, spark="running")
        settings = AutoSettings(worker_memory=memory)
        return placed(end, nothing_kept, lambda: machine, MeasuredCosts(), settings).facts.largest_small_side

    assert [largest(memory << 20) >> 20 for memory in (64, 512, 1024)] == [2, 16, 32]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.000012, "0.012 ms"), (0.0994, "99 ms"), (0.0996, "0.1 s"), (1.234, "1.2 s"), (99.7, "100 s"), (361, "360 s")],
)
def test_estimates_have_two_digits_and_no_exponent(seconds, words):
    """Users read them in explain()."""
    assert placement._seconds(seconds) == words


def test_windows_in_columns_cost_less_than_their_calls(facts):
    """Each item is a call of the key, of the timestamp and of the collector, where they are not read."""
    of_event = {"timestamp": lambda n: n, "key": lambda n: n % 7}
    windows = numbers(500_000).aggregate_by_window(tumbling(1000), counting(), **of_event)
    in_columns, called_ones = (
        estimate(windows, facts=dataclasses.replace(facts, columns=each)) for each in ("auto", "off")
    )

    assert in_columns.seconds_here * 2 < called_ones.seconds_here
