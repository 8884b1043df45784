"""Large plans: 20,000 steps, and a diamond 60 levels deep."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import pytest

from dstream import Entry, Stream
from dstream.gatherers import scan
from dstream.plan import Filter, Limit, Map, Skip, is_bounded, is_ordered, rewrite, topological
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.streams import Read

STEPS = 20_000


def add_one(n):
    """Add one."""
    return n + 1


def positive(n):
    """Say whether a number is positive."""
    return n > 0


@pytest.fixture
def long_stream(engine):
    """A stream of 20,000 maps and filters."""
    stream = engine.stream([0, 1], 2)
    for _ in range(STEPS // 2):
        stream = stream.map(add_one).filter(positive)
    return stream


def test_a_chain_of_20000_steps_runs(long_stream):
    """On both engines each step is run, and the failure of none overflows a stack."""
    assert long_stream.to_list() == [10_000, 10_001]


def test_the_last_of_20000_steps_is_blamed(engine):
    """A failure in the last of 20,000 steps names its number."""
    stream = engine.stream([0], 1)
    for _ in range(STEPS):
        stream = stream.map(add_one)

    with pytest.raises(ZeroDivisionError) as caught:
        stream.map(lambda n: n // (n - 20_000)).to_list()
    assert "step 20002 of 20002, .map(lambda)" in caught.value.__notes__[1]
    assert "on the item 20000\n      ... 19997 more calls ...\n" in caught.value.__notes__[1]


def test_a_plan_of_20000_steps_is_rewritten_and_shown(source):
    """Rewriting, asking and showing it take a moment and no recursion."""
    plan = source
    for _ in range(STEPS // 2):
        plan = Filter(Map(plan, add_one), positive)
    core = rewrite(plan)

    assert (type(core), len(core.ops), type(core.upstream)) == (Chain, STEPS, Read)
    assert (is_bounded(core), is_ordered(core), len(topological(plan))) == (True, True, STEPS + 1)


def test_20000_limits_and_skips_become_two_nodes(source):
    """Neighbouring limits and skips become one each, however many they are."""
    plan = source
    for _ in range(STEPS // 2):
        plan = Skip(plan, 1)
    for number in range(STEPS // 2):
        plan = Limit(plan, STEPS - number)

    assert [type(each) for each in topological(rewrite(plan))] == [Read, Limit, Skip]


def test_20000_streams_can_be_concatenated(local_context):
    """A sum of many streams is one flat concat."""
    one = local_context.stream([1])
    stream = Stream.empty()
    for _ in range(STEPS):
        stream = stream + one

    assert (stream.count(), len(repr(stream)) < 300) == (STEPS, True)


@pytest.mark.parametrize("step", [lambda s: s.flat_map(lambda n: [n]), lambda s: s.take_while(lambda n: True)])
def test_thousands_of_other_steps_run_too(local_context, step):
    """`flat_map` opens a loop of its own, `take_while` stands alone: neither exhausts the stack."""
    stream = local_context.stream([1, 2])
    for _ in range(STEPS):
        stream = step(stream)

    assert stream.to_list() == [1, 2]


MIXED = [
    lambda s: s.map(add_one),
    lambda s: s.filter(positive),
    lambda s: s.distinct(),
    lambda s: s.take_while(positive),
    lambda s: s.sorted(),
    lambda s: s.drop_while(lambda n: n < 0),
    lambda s: s.skip(0),
    lambda s: s.limit(10),
    lambda s: s.flat_map(lambda n: [n]),
    lambda s: s.gather(scan(int, lambda _, n: n)),
    lambda s: s.parallel(1),
]


def test_20000_mixed_steps_run(engine):
    """In one partition each step reads from the one before it; no mix of them exhausts a stack."""
    chosen = random.Random(5).choices(MIXED, k=STEPS)
    stream = engine.stream([3, 1, 2], 1)
    for step in chosen:
        stream = step(stream)
    added = chosen.count(MIXED[0])

    assert sorted(stream.to_list()) == [added + 1, added + 2, added + 3]


def test_a_long_plan_reads_nothing_ahead(local_context):
    """Where a thread runs a part of the steps, it gives one item when it is asked for one; leaving early ends it."""
    seen = []
    stream = Stream.iterate(1, add_one).peek(seen.append)
    for _ in range(1000):
        stream = stream.take_while(positive).map(add_one)
    before = set(threading.enumerate())

    assert stream.limit(2).to_list() == [1001, 1002]
    assert seen == [1, 2]
    # Those of PySpark and of earlier tests come and go meanwhile.
    assert not [thread.name for thread in threading.enumerate() if thread not in before and "long-plan" in thread.name]


def test_a_failure_deep_in_a_long_plan_names_its_step(local_context):
    """As in a short one."""
    stream = local_context.stream([0]).map(lambda n: 1 // n)
    for _ in range(1000):
        stream = stream.distinct().filter(positive)

    with pytest.raises(ZeroDivisionError) as caught:
        stream.to_list()
    assert "step 2 of 2002" in caught.value.__notes__[1]


@pytest.mark.parametrize(
    "grow",
    [
        lambda s, other: s.join(other).map(left_of),
        lambda s, other: other.join(s).map(left_of),
        lambda s, other: (s + other).map(lambda e: e).distinct(),
    ],
)
def test_2000_streams_meet(local_context, grow):
    """Joined one by one, from the left or from the right, or put behind one another and made distinct."""
    stream = other = local_context.stream([Entry(1, 1)])
    for _ in range(2000):
        stream = grow(stream, other)

    assert stream.to_list() == [Entry(1, 1)]


def left_of(entry):
    """Return an entry with the left value of a pair."""
    return Entry(entry.key, entry.value[0])


def diamond(stream, levels):
    """Return a stream whose plan doubles its items at each level, without copying a node."""
    for _ in range(levels):
        stream = stream.map(add_one) + stream.filter(positive)
    return stream


def test_a_diamond_60_levels_deep_is_rewritten_at_once():
    """A shared node is rewritten once: 2 ** 60 paths lead through 181 nodes."""
    start = time.process_time()
    core = rewrite(diamond(Stream.of(1, 2), 60)._node)

    assert len(topological(core)) == 181
    assert time.process_time() - start < 0.5


def test_a_diamond_60_levels_deep_gives_its_first_items(local_context):
    """The first of 2 ** 61 items are there at once."""
    assert diamond(local_context.stream([1, 2]), 60).limit(5).to_list() == [61, 62, 60, 61, 60]


_LOWER = """
import itertools
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
from types import SimpleNamespace
from dstream import Entry, Stream
from dstream.gatherers import scan
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.spark.run.graphs import SparkGraphRun
from dstream.plan import Partitions, rewrite
stream = Stream.of(1, 2)
for _ in range(60):
    stream = stream.map(abs) + stream.filter(bool)
facts = ClusterFacts(2, 2, 0)
graph, _ = compiled(rewrite(Partitions(stream._node)), facts)
run = SparkGraphRun(graph, facts, SimpleNamespace(counting=lambda: None, backend=SimpleNamespace(caches=None)))
flow = run.flow(graph.ending.inputs)
print(len(list(itertools.islice(flow.segments[0].pieces, 5))))
"""


def test_a_diamond_60_levels_deep_is_lowered_to_spark():
    """Lowering does not repeat what is shared: it needs neither a minute nor two gigabytes."""
    done = subprocess.run([sys.executable, "-c", _LOWER], capture_output=True, text=True, timeout=120, check=False)

    assert (done.stdout, done.stderr[-300:]) == ("5\n", "")
