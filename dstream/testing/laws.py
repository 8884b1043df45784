"""`check_collector` and `check_operation`: the laws of collectors and of aggregate operations.

`check_operation` tries the same on operations of several inputs.
"""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import cloudpickle

from dstream.failures import shown
from dstream.spi import AggregateOperation, Characteristics, Collector
from dstream.testing.comparison import difference, exact

__all__ = ["LAWS", "Laws", "check_collector", "check_operation", "tried"]


T = TypeVar("T")

_ALL_WAYS_UP_TO = 7
_SOME_WAYS = 64


def check_collector(
    collector: Collector[T, Any, Any], samples: Iterable[T], *, by: Callable[[Any], object] | None = None
) -> None:
    """Assert the laws of a collector on sample items, in this process and without an engine.

    - The supplier makes a fresh container each time; no other container changes when it is filled.
    - Every split of the items, for up to 7 of them, with the containers combined from the left or from the right, has
      the result of collecting without a split. An empty container changes nothing.
    - The collector and its containers survive pickling.
    - `accumulate_all` is a loop of the accumulator.
    - The finisher does not change the container: it may be called again, and the container filled further.
    - Deducting, if supported, restores the result without the deducted items, for either order of the two.
    - No item is changed.
    - `IDENTITY_FINISH` is true, if declared. `UNORDERED` cannot be tested: it allows an engine to return the result of
      any order.

    Args:
        collector: the collector.
        samples: sample items, as diverse as possible; their order is the encounter order.
        by: makes a result comparable, such as `lambda mean: round(mean, 9)`.

    Raises:
        AssertionError: it breaks one; the message names the law, how the items were split, and both results.

    Example:
        >>> import operator
        >>> check_collector(Collector(int, operator.add, operator.add), [3, 1, 2])
        >>> check_collector(Collector(int, operator.sub, operator.sub), [3, 1, 2])
        Traceback (most recent call last):
            ...
        AssertionError: the identity: an empty one before: expected -6, got 6
    """
    __tracebackhide__ = True
    for found in tried(Laws(collector, _copied(list(samples)), by or _unchanged), LAWS):
        raise AssertionError(found)


def tried(laws: Laws, chosen: Iterable[str]) -> Iterator[str]:
    """Test the `chosen` laws; yield the violations, each with the name of its law."""
    for name in chosen:
        for found in LAWS[name](laws):
            yield f"{name}: {found}"


def _unchanged(result: Any) -> Any:
    return result


@dataclass(frozen=True)
class Laws:
    """A collector and the items on which its laws are tried.

    Attributes:
        by: makes a result comparable.
    """

    collector: Collector[Any, Any, Any]
    samples: list[Any]
    by: Callable[[Any], object]

    def whole(self) -> Any:
        """Return the result of collecting without a split."""
        return self.result(self.of(self.samples))

    def of(self, items: Sequence[Any]) -> Any:
        """Return the container of `items`."""
        return self.collector.accumulated(self.collector.supplier(), items)

    def result(self, container: Any) -> Any:
        """Return a comparable copy of the result of a container: it may be the container itself."""
        return self.by(_copied(self.collector.finisher(container)))

    def differs(self, container: Any, way: str, items: Sequence[Any] | None = None) -> Iterator[str]:
        """Yield the difference of a container's result from the result without a split, if there is one."""
        wanted = self.whole() if items is None else self.result(self.of(items))
        found = difference(wanted, self.result(container))
        if found is not None:
            yield f"{way}: {found}"


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except TypeError:  # It contains an object that cannot be copied, such as a lock.
        return value


def _items_stay(laws: Laws) -> Iterator[str]:
    before = exact(laws.samples)
    laws.result(laws.of(laws.samples))
    if exact(laws.samples) != before:
        yield f"the accumulator changed one; they are now {shown(laws.samples)}"


def _supplier_is_fresh(laws: Laws) -> Iterator[str]:
    collector = laws.collector
    nothing = laws.result(collector.supplier())
    mine, theirs = collector.supplier(), laws.of(laws.samples)
    found = difference(nothing, laws.result(mine))
    if found is not None:
        yield f"a new container after another one was filled: {found}"
    yield from laws.differs(theirs, "a container after a new one was finished")


def _bulk_is_a_loop(laws: Laws) -> Iterator[str]:
    one_by_one = replace(laws.collector, accumulate_all=None)
    yield from laws.differs(one_by_one.accumulated(laws.collector.supplier(), laws.samples), "item by item")
    half = len(laws.samples) // 2
    mixed = one_by_one.accumulated(laws.collector.supplier(), laws.samples[:half])
    yield from laws.differs(laws.collector.accumulated(mixed, laws.samples[half:]), "half item by item, half at once")


def _empty_changes_nothing(laws: Laws) -> Iterator[str]:
    collector = laws.collector
    yield from laws.differs(collector.combined(collector.supplier(), laws.of(laws.samples)), "an empty one before")
    yield from laws.differs(collector.combined(laws.of(laws.samples), collector.supplier()), "an empty one after")


def _any_split_gives_the_same(laws: Laws) -> Iterator[str]:
    for parts in _ways(laws.samples):
        containers = [laws.of(part) for part in parts]
        yield from laws.differs(functools.reduce(laws.collector.combined, containers), f"{shown(parts)} from the left")
        backwards = [laws.of(part) for part in reversed(parts)]
        combined = functools.reduce(lambda right, left: laws.collector.combined(left, right), backwards)
        yield from laws.differs(combined, f"{shown(parts)} from the right")


def _ways(items: list[Any]) -> Iterator[list[list[Any]]]:
    """Yield all partitionings of a few items; of many items every single cut, and random partitionings."""
    inner = range(1, len(items))
    if len(items) <= _ALL_WAYS_UP_TO:
        every = itertools.chain.from_iterable(itertools.combinations(inner, n) for n in range(1, len(items)))
        yield from (_cut(items, cuts) for cuts in every)
        return
    yield from (_cut(items, (cut,)) for cut in inner)
    chance = random.Random(0)  # A seed, so that a violation is found again.
    for _ in range(_SOME_WAYS):
        yield _cut(items, sorted(chance.choices(range(len(items) + 1), k=chance.randint(2, 9))))


def _cut(items: list[Any], cuts: Sequence[int]) -> list[list[Any]]:
    return [items[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(items)])]


def _survives_pickling(laws: Laws) -> Iterator[str]:
    half = len(laws.samples) // 2
    try:
        collector = pickle.loads(cloudpickle.dumps(laws.collector, protocol=5))
        sent = [cloudpickle.dumps(laws.of(part), protocol=5) for part in _cut(laws.samples, (half,))]
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    left, right = map(pickle.loads, sent)
    yield from laws.differs(collector.combined(left, right), "sent to another process")


def _keeps_its_word(laws: Laws) -> Iterator[str]:
    container = laws.of(laws.samples)
    says_so = Characteristics.IDENTITY_FINISH in laws.collector.characteristics
    if says_so and laws.collector.finisher(container) is not container:
        yield "IDENTITY_FINISH, but the finisher returns something else than the container"


def _finishing_changes_nothing(laws: Laws) -> Iterator[str]:
    for head, tail in _cuts(laws.samples):
        container = laws.of(head)
        laws.result(container)
        yield from laws.differs(container, f"{shown(head)} finished twice", head)
        more = laws.collector.accumulated(container, tail)
        yield from laws.differs(more, f"{shown(tail)} accumulated after {shown(head)} was finished")


def _deducting_undoes(laws: Laws) -> Iterator[str]:
    collector = laws.collector
    if collector.deducting is None:
        return
    for head, tail in _cuts(laws.samples):
        for kept, gone in ((head, tail), (tail, head)):
            left = collector.deducted(collector.combined(laws.of(head), laws.of(tail)), laws.of(gone))
            way = f"{shown(head)} and {shown(tail)} combined, {shown(gone)} deducted"
            yield from laws.differs(left, way, kept)
            more = collector.accumulated(left, gone)
            yield from laws.differs(more, f"{way}, and accumulated again", [*kept, *gone])


def _cuts(items: list[Any]) -> Iterator[list[list[Any]]]:
    """Yield every single cut of the items, also before the first and after the last; of many items a sample."""
    step = max(1, len(items) // _SOME_WAYS)
    return (_cut(items, (cut,)) for cut in range(0, len(items) + 1, step))


LAWS: dict[str, Callable[[Laws], Iterator[str]]] = {
    "an item": _items_stay,
    "the supplier": _supplier_is_fresh,
    "accumulate_all": _bulk_is_a_loop,
    "the identity": _empty_changes_nothing,
    "the combiner": _any_split_gives_the_same,
    "the finisher": _finishing_changes_nothing,
    "deducting": _deducting_undoes,
    "pickling": _survives_pickling,
    "a characteristic": _keeps_its_word,
}


def check_operation(
    operation: AggregateOperation[Any, Any, Any],
    *inputs: Iterable[Any],
    by: Callable[[Any], object] | None = None,
) -> None:
    """Assert the laws of an aggregate operation on sample items, in this process and without an engine.

    - `create` makes a fresh container each time.
    - `finish` does not change the container: it may be called again, and the container filled further.
    - `combine`, if there is one, is associative: any split of the items with combined containers has the result of
      accumulating them without a split, and an empty container changes nothing. Items of earlier inputs are first.
    - `deduct`, if there is one, undoes `accumulate` and `combine`, for any part of the items.
    - The operation and its containers survive pickling, and no item is changed.

    For a collector the laws of `check_collector` apply too.

    Args:
        operation: the operation.
        inputs: sample items for each of its inputs, as diverse as possible, in their encounter order.
        by: makes a result comparable, such as `sorted` if the order of a list does not matter.

    Raises:
        AssertionError: it breaks one; the message names the law, the items, and both results.
        TypeError: it has another number of inputs.

    Example:
        >>> from collectors import co_operation, counting, summing
        >>> check_operation(co_operation(counting(), summing()), ["a", "b"], [1, 2, 3])
    """
    __tracebackhide__ = True
    if operation.arity != len(inputs):
        raise TypeError(f"{operation!r} has {operation.arity} inputs, and there are items for {len(inputs)}")
    if isinstance(operation, Collector):
        check_collector(operation, *inputs, by=by)
        return
    samples = list(inputs[0]) if operation.arity == 1 else _pairs(inputs)
    laws = Laws(_as_collector(operation), samples, by or (lambda result: result))
    for found in tried(laws, _LAWS if operation.combine is not None else _WITHOUT_COMBINING):
        raise AssertionError(_in_words_of_operations(found, operation.arity))


_WITHOUT_COMBINING = ("an item", "the supplier", "the finisher")
_LAWS = (*_WITHOUT_COMBINING, "the identity", "the combiner", "deducting", "pickling")


def _as_collector(operation: AggregateOperation[Any, Any, Any]) -> Collector[Any, Any, Any]:
    """Return a collector equal to the operation; of several inputs, one of (number of the input, item)."""
    accumulates = operation.accumulates

    def accumulate(container: Any, pair: tuple[int, Any]) -> Any:
        return accumulates[pair[0]](container, pair[1])

    one = accumulates[0] if operation.arity == 1 else accumulate
    return Collector(operation.create, one, operation.combine or _never, operation.finish, deducting=operation.deduct)


def _never(left: Any, right: Any) -> Any:
    raise AssertionError("no law that combines is tried")


def _pairs(inputs: Iterable[Iterable[Any]]) -> list[tuple[int, Any]]:
    return [(number, item) for number, items in enumerate(inputs) for item in items]


def _in_words_of_operations(found: str, arity: int) -> str:
    words = {"the supplier": "create", "the finisher": "finish", "the combiner": "combine", "deducting": "deduct"}
    renamed = re.sub(f"^({'|'.join(words)})", lambda match: words[match[1]], found)
    return renamed if arity == 1 else f"{renamed} (items stand behind the numbers of their inputs)"
