"""What plans are compiled to: values that can be looked at and pickled, made without Spark."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import cloudpickle
import pytest

from collectors import summing
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.sort_limit import IncrementalScan
from dstream.engine.inprocess import InProcessEngine
from dstream.engine.physical.graph import Ask, Done, Report
from dstream.engine.physical.vertices import ITEMS_AND_MARKS, FromTable, Rows, Splits, operations_of
from dstream.engine.tasks.process import InFunction
from dstream.engine.tasks.rows import ITEMS, SAMPLE, STOPPED, Row
from dstream.expressions import Applied, Argument, Called, Constant
from dstream.operators.rows.batches import dumps_items
from dstream.plan import Partitions, ToList, rewrite
from dstream.plan.operations import elementwise, keyed, pairs, sort_limit, streams, unbounded
from dstream.plan.operations.pairs import Pairing, TwoStreams
from dstream.plan.operations.streams import Hint, Node, OrderPreserving, Read, SeveralInputs, Unary
from dstream.stream import Stream
from dstream.stream.keyed import aggregated
from sources import Items

FACTS = ClusterFacts(parallelism=2, cores=2, largest_small_side=100)


def graph_of(stream, facts=FACTS):
    """Compile the plan of a stream."""
    return compiled(rewrite(Partitions(stream._node)), facts)[0]


def begun(stream, partitions=3, facts=FACTS):
    """Return how the only decision of a plan begins."""
    (decision,) = graph_of(stream, facts).decisions
    return decision.begin(decision.inputs, (partitions,) * len(decision.inputs))


def numbers(count=10):
    """Return a stream of the first numbers."""
    return Stream.of(*range(count))


def test_steps_on_one_item_are_appended():
    """No decision, no vertex: one input with one operation for each run of steps."""
    graph = graph_of(numbers().map(abs).filter(bool).unordered().parallel(3))
    (read,) = graph.ending.inputs

    assert graph.decisions == ()
    assert isinstance(read, Splits)
    assert len(operations_of(read.applied)) == 1


def expressions_of(stream, facts=FACTS):
    """Return what was read of the steps of a stream."""
    (operation,) = operations_of(graph_of(stream, facts).ending.inputs[0].applied)
    return [op.evaluation.expression for op in operation.args[0]]


def test_functions_of_steps_are_read():
    """Only those that tasks call for each item, and only what can be read."""
    stream = numbers().map(abs).filter(lambda n: n > 1).peek(abs).map(print).map(abs).ignore(ValueError)

    assert expressions_of(stream) == [
        Called("abs", (Argument(0),)),
        Applied(">", (Argument(0), Constant(1))),
        *(None, None, None),
    ]


def reduction_of(stream, facts=FACTS):
    """Return what reduces the items of the only input of an aggregate by key, where they are."""
    (decision,) = graph_of(stream, facts).decisions
    ((splits,),) = decision.inputs
    *_, operation = operations_of(splits.applied)
    return operation.args[0]


def test_functions_of_aggregates_are_read():
    """That of the key, and that of what is made of each key, as in a collector; none where the user says no."""
    node = aggregated([numbers()._node], summing(lambda n: n + 1), [abs])
    stream = Stream(node, numbers()._runtime)
    known = reduction_of(stream).in_columns

    assert known.expression == Called("abs", (Argument(0),))
    assert known.downstream.expression == Applied("+", (Argument(0), Constant(1)))
    assert not known.is_verified
    assert reduction_of(stream, replace(FACTS, columns="verify")).in_columns.is_verified
    assert reduction_of(stream, replace(FACTS, columns="off")).in_columns.expression is None


def test_functions_are_read_unless_the_user_says_no():
    """`connect(columns="off")`."""
    stream = numbers().map(abs)

    assert expressions_of(stream, replace(FACTS, columns="verify")) == [Called("abs", (Argument(0),))]
    assert expressions_of(stream, replace(FACTS, columns="off")) == [None]


def test_one_partition_does_it_alone():
    """Whatever looks across partitions is appended then, as a step on one item is."""
    for stream in (numbers().sorted(), numbers().limit(2), numbers().distinct(), numbers().skip(1)):
        move = begun(stream, 1)
        assert isinstance(move, Done)
        assert len(move.inputs[0].applied) == 1


def test_a_sequential_plan_needs_no_decision():
    """It is known before the run that one task has all items."""
    graph = graph_of(numbers().sorted().sequential().limit(3).distinct(), ClusterFacts(1, 2, 100))

    assert graph.decisions == ()
    assert len(operations_of(graph.ending.inputs[0].applied)) == 3


def test_a_limit_runs_waves_until_it_has_enough():
    """One partition, then four; ranges say which items are read again; nothing runs behind the end."""
    first = begun(numbers().limit(5), None)
    assert isinstance(first, Ask)
    assert (first.vertex.is_kept, first.vertex.first, first.port) == (True, 0, ITEMS_AND_MARKS)
    second = first.then.next(Report(first.vertex, 1, [(0, 0, ITEMS, 2)]))
    found = second.then.next(Report(second.vertex, 4, [(1, 0, ITEMS, 2), (2, 0, ITEMS, 2), (3, 0, ITEMS, 2)]))

    assert (second.vertex.first, second.vertex.inputs[0].start, second.vertex.inputs[0].stop) == (1, 1, 5)
    assert isinstance(found, Done)
    assert [each.reader.ranges for each in found.inputs] == [{0: (0, 2), 1: (0, 2), 2: (0, 1)}]
    assert [taken.vertex for taken in found.inputs[0].taken] == [first.vertex, second.vertex]


def test_a_skip_reads_the_rest_where_it_is():
    """What was not looked at is read by what follows."""
    first = begun(numbers().skip(3), None)
    found = first.then.next(Report(first.vertex, 1, [(0, 0, ITEMS, 5)]))
    kept, rest = found.inputs

    assert (kept.reader.ranges, rest.start, rest.stop) == ({0: (3, None)}, 1, None)


def test_a_prefix_ends_at_its_first_mark():
    """Partitions behind it give nothing to `take_while` and everything to `drop_while`."""
    marked = [(0, 0, ITEMS, 4), (1, 0, ITEMS, 2), (1, 2, STOPPED, 0), (2, 0, ITEMS, 3)]
    ranges = []
    for stream in (numbers().take_while(bool), numbers().drop_while(bool)):
        first = begun(stream, None)
        found = first.then.next(Report(first.vertex, 3, marked))
        ranges.append(found.inputs[0].reader.ranges)

    assert ranges == [{0: (0, None), 1: (0, None)}, {1: (2, None), 2: (0, None)}]


def test_waves_end_with_the_last_partition():
    """A wave without partitions says that there are no more, and no job runs for it."""
    first = begun(numbers().limit(100), None)
    second = first.then.next(Report(first.vertex, 1, [(0, 0, ITEMS, 2)]))
    found = second.then.next(Report(second.vertex, 0))

    assert isinstance(first.then, IncrementalScan)
    assert [each.reader.ranges for each in found.inputs] == [{0: (0, 2)}]


def test_a_sort_has_as_many_ranges_as_its_items_are_worth():
    """Few items are sorted by one task; many are cut at borders that tasks find in the sample, which stays pickled."""
    sample = Row(0, 0, 0, SAMPLE, 10, dumps_items([5]))
    asked = begun(numbers().sorted())
    few = asked.then.next(Report(asked.vertex, 3, [sample])).inputs[0]
    many = asked.then.next(Report(asked.vertex, 3, [sample._replace(size=1_000_000)])).inputs[0]

    assert (few.targets, few.taken[0].vertex is asked.vertex) == (1, True)
    assert (many.targets, many.taken[0].vertex.output.sample) == (3, (sample.payload,))


def test_a_join_looks_at_one_side_then_at_the_other():
    """A side of few bytes comes to the driver; if none is small, the smaller one is held where both meet."""
    stream = numbers().join(numbers(), on=abs)
    right = begun(stream)
    left = right.then.next(Report(right.vertex, 3, [(ITEMS, 500)]))
    meet = left.then.next(Report(left.vertex, 3, [(ITEMS, 400)])).inputs[0]
    small = right.then.next(Report(right.vertex, 3, [(ITEMS, 50), (ITEMS + 1, 7)]))
    travelling = small.then.next(Report(small.vertex, 3, [Row(0, 0, 0, ITEMS, 1, b"x")]))

    assert (right.purpose, left.purpose) == (
        "the right side is computed, and measured",
        "the left side is computed, and measured",
    )
    assert [taken.vertex for taken in meet.taken] == [left.vertex, right.vertex]
    assert [type(each) for each in travelling.inputs] == [Rows, Splits]


@pytest.mark.parametrize(
    ("right", "left", "sent"), [(5, 9, ""), (5, 10, "right"), (10, 5, "left"), (2**5, 17, ""), (9, 3, "left")]
)
def test_a_side_is_sent_whole_if_that_is_less_than_both(right, left, sent):
    """To three tasks twice its bytes have to be less than those of the other side."""
    facts = ClusterFacts(3, 3, 16 * 2**20)
    first = begun(numbers().join(numbers(), on=abs), facts=facts)
    second = first.then.next(Report(first.vertex, 3, [(ITEMS, right << 20)]))
    found = second.then.next(Report(second.vertex, 3, [(ITEMS, left << 20)]))

    assert (found.purpose if sent else len(found.inputs[0].taken)) == (
        f"the {sent} side comes to this process" if sent else 2
    )


def test_a_large_side_is_sent_apart_from_its_function():
    """As the right side of a hash join is: a stage has few bytes."""
    right = begun(numbers().join(numbers(), on=abs), 1, ClusterFacts(1, 1, 16 * 2**20))
    asked = right.then.next(Report(right.vertex, 1, [(ITEMS, 5 << 20)]))
    sending = asked.then.next(Report(asked.vertex, 1, [Row(0, 0, 0, ITEMS, 1, b"x" * (5 << 20))]))
    done = sending.then.next(InFunction("sent", sending.payloads))

    assert list(map(len, sending.payloads)) == [5 << 20]
    assert done.inputs[0].applied[-1].operation.sent.name == "sent"


@pytest.mark.parametrize("size", [16 * 2**20, 16 * 2**20 + 1])
def test_in_this_process_a_side_of_16_mb_is_held(size):
    """It goes to the items of the other one, which is not measured then; a larger one meets it by keys."""
    stream = numbers().join(numbers(), on=abs)
    right = begun(stream, 1, InProcessEngine(2**29).in_one_task(ToList(stream._node)).facts)
    asked = right.then.next(Report(right.vertex, 1, [(ITEMS, size)]))

    assert right.vertex.output.targets == 1
    assert asked.purpose == (
        "the left side is computed, and measured" if size > 16 * 2**20 else "the right side comes to this process"
    )


def test_a_graph_can_be_pickled():
    """All of it: functions of the user's, decisions, inputs."""
    graph = graph_of(numbers().map(lambda n: n + 1).sorted(key=lambda n: -n).limit(3).distinct() + numbers().skip(2))
    copy = cloudpickle.loads(cloudpickle.dumps(graph))

    assert [type(each) for each in copy.decisions] == [type(each) for each in graph.decisions]


def test_a_source_is_not_divided_by_the_compiler():
    """Listing what is there is for whoever runs the graph."""

    class Unread(Items):
        def splits(self, parallelism):
            raise AssertionError("nobody runs this")

    from dstream.plan import Distinct, Read, Sorted, ToList

    assert len(compiled(rewrite(ToList(Sorted(Distinct(Read(Unread([1])))))), FACTS)[0].decisions) == 2


_WITHOUT_SPARK = """
import operator, sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from dstream import Stream
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.gatherers import Gatherer, fold, map_concurrent, scan, window_sliding
from dstream.plan import ToList, rewrite, topological
from dstream.plan.operations.keyed import Stateful
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Spread
from dstream.spi import AggregateOperation
from dstream.stream import Stream
from dstream.stream.keyed import aggregated

def push(state, item, downstream):
    downstream.push(item)

s = Stream.of(1, 2, 3).map(abs).peek(print)
streams = [
    s.sorted(), s.sorted().limit(2), s.distinct(), s.unordered().distinct(), s.limit(2), s.skip(2),
    s.take_while(bool), s.drop_while(bool), s.join(s, on=abs), s.cogroup(s, on=abs), s + s, s.cache(), s.union(s),
    s.zip(s), s.semi_join(s, on=abs), s.asof_join(s, on=abs), s.cross(s), s.key_by(abs).group_by_key(),
    s.partition_by(3), s.parallel(3).configure({"a": "b"}), Stream.generate(int).limit(3),
    s.gather(window_sliding(2)), s.gather(scan(int, operator.add)), s.gather(fold(int, operator.add)),
    s.gather(Gatherer.of(list, integrator=push)),
    s.gather(Gatherer.of(list, integrator=push, combiner=list.extend, finisher=push)),
    s.gather(map_concurrent(2, abs)),
    Stream(HashJoin(s._node, s._node, abs, abs), None),
    s.map_async(abs, rate=3) if hasattr(s, "map_async") else s,
]
op = AggregateOperation(list, (list.append, list.append), list.extend)
node = s._node
streams += [Stream(each, None) for each in (
    aggregated([node], op.with_accumulate(list.append)), aggregated([node, node], op, [abs, abs]),
    Stateful(node, list, max, "map"), Stateful(node, list, max, "filter", abs), Spread(node), Spread(node, 3),
)]
kinds = set()
for stream in streams:
    end = rewrite(ToList(stream._node))
    kinds.update(type(node).__name__ for node in topological(end.upstream))
    compiled(end, ClusterFacts(2, 2, 100))
print(*sorted(kinds))
"""


def test_a_graph_with_a_cache_can_be_pickled():
    """What is kept belongs to whoever runs it; the copy is another `cache()`."""
    graph = graph_of(numbers().map(abs).cache().sorted())
    keep, _ = graph.decisions
    copy, _ = cloudpickle.loads(cloudpickle.dumps(graph)).decisions

    assert copy.node.identity is not keep.node.identity


_WITH_TESTS_OF_THEIR_OWN = {"AssignTimestamps", "Fork", "OverEpochs", "ProcessorGraph", "UsingBatches"}
"""Operations of services, forks, epochs and graphs, which the tests of these compile."""


def test_every_operation_is_compiled_without_pyspark():
    """In a process that cannot import it."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_SPARK], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stderr[-500:] == ""
    families = {Node, Unary, OrderPreserving, Hint, TwoStreams, Pairing, SeveralInputs}
    rooms = (streams, sort_limit, elementwise, keyed, pairs, unbounded)
    named = {name: found for room in rooms for name, found in vars(room).items()}
    kinds = {each for each in named.values() if isinstance(each, type) and issubclass(each, Node)}
    operations = {each.__name__ for each in kinds - families if not each.__name__.startswith("_")}
    of_an_engine = {"Table", "ReadCache"}  # These have what an engine gave.
    assert set(done.stdout.split()) == operations - of_an_engine - _WITH_TESTS_OF_THEIR_OWN


def test_a_table_is_an_input():
    """Who runs the graph knows what it is."""
    from dstream.plan import Table

    (each,) = compiled(rewrite(Partitions(Table(object()))), FACTS)[0].ending.inputs
    assert isinstance(each, FromTable)


def test_a_source_may_be_divided_into_other_parts_than_there_are_cores():
    """As a pipeline says it."""
    read = Read(Items(range(9)), parts=3)
    (splits,) = graph_of(Stream(read, None)).ending.inputs

    assert [each.divisor for each in splits.parts] == [3]
