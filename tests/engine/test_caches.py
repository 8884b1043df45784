"""What the engines of a context keep of `cache()` steps."""

from __future__ import annotations

import copy
import pickle
import threading
import time
import weakref

import pytest

from dstream.engine.local import LocalEngine
from dstream.operators.rows.caches import Caches
from dstream.plan import Cache, CacheContent, Map, Read, Table, ToList, rewrite
from sources import Items


class Kept(list):
    """Items that can be asked whether they are still there."""


def cache():
    """Return the operation of a cache."""
    return rewrite(user_cache())


def user_cache():
    """Return the node of a cache."""
    return Cache(Map(Read(Items([1])), abs))


def never():
    """Stand for a computation that must not run."""
    raise AssertionError("it is kept")


def test_caches_find_what_was_computed():
    """Nothing before; also under what its node is rewritten to another time."""
    caches, node = Caches(), user_cache()
    first, second = rewrite(node), rewrite(node)
    assert caches.found(first) is None

    kept = caches.kept(first, lambda: CacheContent([1], True))
    assert caches.kept(second, never) is kept is caches.found(first) is caches.found(second)
    assert caches.found(cache()) is None


def test_caches_let_other_threads_wait():
    """One computes the items; each gets those."""
    caches, node, start, computed, results = Caches(), cache(), threading.Barrier(4), [], []

    def compute():
        computed.append(1)
        time.sleep(0.05)
        return CacheContent([1], True)

    def run():
        start.wait()
        results.append(caches.kept(node, compute))

    threads = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert (computed, len(results), len(set(map(id, results)))) == ([1], 4, 1)


def test_a_failure_leaves_nothing_kept():
    """The next one computes it."""
    caches, node = Caches(), cache()
    with pytest.raises(ZeroDivisionError):
        caches.kept(node, lambda: 1 / 0)

    assert caches.found(node) is None
    assert caches.kept(node, lambda: CacheContent([2], True)).items == [2]


def test_caches_let_go_with_the_node():
    """At once, when no plan has it any more; a plan that was made of it has it too."""
    caches, node = Caches(), user_cache()
    items = weakref.ref(caches.kept(rewrite(node), lambda: CacheContent(Kept(), True)).items)
    node = rewrite(node)
    assert items() is not None

    del node
    assert items() is None


def test_caches_let_go_when_they_are_cleared():
    """Although the node is still there."""
    caches, node = Caches(), cache()
    items = weakref.ref(caches.kept(node, lambda: CacheContent(Kept(), True)).items)
    caches.clear()

    assert (items(), caches.found(node)) == (None, None)


def test_what_went_with_its_engine_is_not_found():
    """It must be computed again."""
    caches, node, is_running = Caches(), cache(), [True]
    caches.kept(node, lambda: CacheContent([1], True, is_there=lambda: is_running[0]))
    assert caches.found(node) is not None

    is_running[0] = False
    assert caches.found(node) is None
    assert caches.kept(node, lambda: CacheContent([2], True)).items == [2]


@pytest.mark.parametrize("other", [copy.copy, copy.deepcopy, lambda node: pickle.loads(pickle.dumps(node))])
def test_another_node_has_nothing_kept(other):
    """A copy, or what was pickled, is another `cache()`."""
    caches, node = Caches(), user_cache()
    caches.kept(rewrite(node), lambda: CacheContent([1], True))

    assert caches.found(rewrite(other(node))) is None
    assert caches.found(rewrite(node)) is not None


def test_this_process_does_not_open_what_stands_before():
    """It reads what another engine of its context has kept of a table that is not here."""
    caches, node = Caches(), Cache(Table([]))
    caches.kept(rewrite(node), lambda: CacheContent([1, 2], False))

    assert LocalEngine(2**28, caches=caches).submit(rewrite(ToList(node))).result() == [1, 2]
