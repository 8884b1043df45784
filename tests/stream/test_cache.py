"""`cache()`: computed once, kept for later, gone when nobody reads it."""

from __future__ import annotations

import copy
import gc
import threading
import time
import weakref

import cloudpickle
import pytest

import dstream as ds
from dstream import Stream
from dstream.base.memory import Bound
from dstream.errors import IllegalStateError, SerializationError
from dstream.operators.rows.caches import CachedItems
from dstream.plan import is_ordered, recalled, rewrite
from dstream.plan.operations.streams import ReadCache
from dstream.testing import Parts
from dstream.testing.engines import MASTER, SETTINGS


def caches_of(context):
    """Return what the engine of a context keeps."""
    engine = context.running_engine()
    return engine._caches if context.engine == "local" else engine._backend.caches


def test_cache_computes_once(engine):
    """What stands before it runs once, however often and in how many ways the items are read."""
    seen = []
    cached = engine.stream("bca", 3).peek(seen.append).cache()

    assert (cached.count(), cached.to_list(), cached.sorted().to_list()) == (3, ["b", "c", "a"], ["a", "b", "c"])
    assert seen == ["b", "c", "a"]


def test_cache_is_lazy(engine):
    """Nothing is computed before a terminal operation; `find_first` then computes all."""
    seen = []
    cached = engine.stream(range(4), 2).peek(seen.append).cache()
    assert seen == []

    assert (cached.map(str).find_first().get(), seen) == ("0", [0, 1, 2, 3])


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_cache_keeps_the_order(engine, partitions):
    """Of a source and of a sorted stream, also through a concat and a limit."""
    cached = engine.stream([3, 1, 2], partitions).sorted(reverse=True).cache()

    assert cached.limit(2).to_list() == [3, 2]
    assert (cached + cached).skip(2).to_list() == [1, 3, 2, 1]


def test_cache_of_nothing(engine):
    """An empty stream stays empty."""
    cached = engine.stream([], 2).cache()

    assert (cached.to_list(), cached.count()) == ([], 0)


def test_cache_reads_sources_again_only_before_it(engine):
    """A list that changed later is not seen any more; without the cache it is."""
    numbers = [1, 2]
    plain, cached = engine.stream(numbers), engine.stream(numbers).cache()
    cached.count()
    numbers.append(3)

    assert (cached.to_list(), plain.to_list()) == ([1, 2], [1, 2, 3])


def test_cache_that_failed_is_computed_again(engine):
    """A failure leaves nothing behind."""
    texts = ["1", "x"]
    cached = engine.stream(texts).map(int).cache()
    with pytest.raises(ValueError, match="'x'"):
        cached.to_list()
    texts[1] = "2"

    assert cached.to_list() == [1, 2]


def test_cache_needs_an_end():
    """An endless stream is refused when it is run."""
    endless = Stream.iterate(0, lambda n: n + 1).cache()

    with pytest.raises(IllegalStateError, match=r"cannot be cached: \.cache\(\)"):
        endless.find_first()


def test_two_threads_compute_it_once(engine):
    """The second one waits for what the first one computes."""
    seen = []
    cached = engine.stream(range(3)).peek(lambda n: (seen.append(n), time.sleep(0.02))).cache()
    threads = [threading.Thread(target=cached.to_list) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [0, 1, 2]


def test_spark_forgets_the_items_with_the_streams(spark_context):
    """The executors hold nothing any more once no stream reads it."""
    java = spark_context.spark.sparkContext._jsc
    gc.collect()  # What earlier tests left goes some time later, when Java's collector has been there.
    others = set(java.getPersistentRDDs())
    cached = spark_context.stream(range(9), 3).map(str).cache()
    cached.count()
    reader = cached.map(len)
    (ours,) = set(java.getPersistentRDDs()) - others
    del cached
    gc.collect()
    assert ours in set(java.getPersistentRDDs())

    del reader
    gc.collect()
    assert ours not in set(java.getPersistentRDDs())


@pytest.mark.on_spark("make")
@pytest.mark.parametrize("make", [lambda stream: stream, lambda stream: stream.unordered()])
def test_what_is_kept_is_as_ordered_as_the_stream(engine, make):
    """Also for the plans that read it later."""
    cached = make(engine.stream([1])).cache()
    cached.count()
    read = recalled(rewrite(cached._node), caches_of(engine.context).found)

    assert isinstance(read, ReadCache)
    assert is_ordered(read) == is_ordered(rewrite(make(engine.stream([1]))._node))


def test_what_is_kept_changes_no_plan(engine):
    """A plan is a value: it is rewritten to the same before and after its items are kept."""
    cached = engine.stream([2, 1]).map(abs).cache()
    plan = (cached + cached.sorted().limit(1))._node
    before = cloudpickle.dumps(rewrite(plan))
    cached.count()

    assert cloudpickle.dumps(rewrite(plan)) == before


@pytest.mark.parametrize("other", [copy.copy, copy.deepcopy, lambda plan: cloudpickle.loads(cloudpickle.dumps(plan))])
def test_another_plan_starts_with_nothing_kept(engine, other):
    """A copy, or what is unpickled, computes the items for itself; the first plan goes on to read its own."""
    numbers = [1, 2]
    cached = engine.stream([0, 1]).map(lambda n: numbers[n]).cache()
    assert cached.to_list() == [1, 2]
    numbers[:] = [3, 4]
    copied = Stream(other(cached._node), engine.context)

    assert (copied.to_list(), cached.to_list(), copied.to_list()) == ([3, 4], [1, 2], [3, 4])


def test_what_stands_before_does_not_begin_again(engine):
    """Such as a sort, which divides its source and sorts a sample before it knows where items go."""
    listed = []

    class Listed(Parts):
        def splits(self, parallelism):
            listed.append(parallelism)
            return super().splits(parallelism)

    cached = engine.context.read(Listed([2, 0], [1])).sorted().cache()

    assert (cached.to_list(), cached.count(), len(listed)) == ([0, 1, 2], 3, 1)


def test_explain_says_what_will_run(engine):
    """The steps before what is kept are left out, as they are when it runs."""
    cached = engine.stream([1]).map(abs).cache()
    assert ".map(abs)" in cached.explain("dot")
    cached.count()

    assert ".map(abs)" not in cached.explain("dot")
    assert ".cache()" in cached.explain("dot")


def test_what_is_kept_is_that_of_one_context():
    """A stream of the default context is computed again when that is another one."""
    seen = []
    cached = Stream.of(1, 2).peek(seen.append).cache()
    for _ in range(2):
        with ds.connect(engine="local") as context:
            ds.set_default_context(context)
            assert (cached.count(), cached.to_list()) == (2, [1, 2])

    assert seen == [1, 2, 1, 2]


def test_a_closed_context_holds_no_items():
    """Although the stream is still there."""
    with ds.connect(engine="local") as context:
        kept = context.stream([1]).map(Bound).cache()
        item = weakref.ref(kept.find_first().get())
        assert item() is not None

    assert (item(), "cache" in repr(kept)) == (None, True)


def test_a_closed_context_leaves_nothing_on_the_executors(spark_context):
    """Although Spark goes on for another context, and the stream is still there."""
    java = spark_context.spark.sparkContext._jsc
    gc.collect()
    others = set(java.getPersistentRDDs())
    with ds.connect(MASTER, config=SETTINGS, storage="memory:") as context:
        cached = context.stream(range(9), 3).cache()
        assert cached.count() == 9
        assert set(java.getPersistentRDDs()) - others

    assert (set(java.getPersistentRDDs()) - others, "cache" in repr(cached)) == (set(), True)


def test_a_loop_ends_after_its_context(spark_context):
    """What it reads stays until then, while Spark goes on for another context."""
    with ds.connect(MASTER, config=SETTINGS, storage="memory:") as context:
        loop = iter(context.stream(range(6), 6).map(lambda n: "x" * 100_000).cache().map(len))
        assert next(loop) == 100_000

    assert list(loop) == [100_000] * 5


@pytest.mark.parametrize(("count", "bound"), [(2000, Bound(2**60)), (520, None), (700, None), (5000, None)])
def test_kept_items_are_all_there(count, bound):
    """In memory, or most of them in a file, which may hold less than its buffer does."""
    assert list(CachedItems(range(count), bound or _AlwaysExceeded())) == list(range(count))


def test_kept_items_spill_and_serve_several_readers():
    """Past the bound the rest lies in a file; two readers do not disturb each other."""
    kept = CachedItems(range(5000), _AlwaysExceeded())
    first, second = iter(kept), iter(kept)

    assert [next(first) for _ in range(3000)] == list(range(3000))
    assert list(second) == list(range(5000))
    assert list(first) == list(range(3000, 5000))


def test_kept_items_are_not_pickled():
    """They belong to this process; a plan is pickled without them."""
    with pytest.raises(SerializationError, match="belongs to its context"):
        cloudpickle.dumps(CachedItems([1], Bound(2**60)))


class _AlwaysExceeded(Bound):
    def exceeded(self):
        return True
