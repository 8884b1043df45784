"""Random pipelines: each step once as a stream operation and once in plain Python, lazily.

`test_random_pipelines` draws them and compares. Every function here works for every item, so that
any steps can follow each other; it lives in a module, so that workers find it by its name.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from more_itertools import chunked, interleave_longest

from dstream import Stream
from dstream.gatherers import window_sliding

__all__ = ["Pipeline", "failing_pipelines", "ordered_pipelines", "unordered_pipelines"]

Make = Callable[[], Iterator[Any]]
Seen = list[list[Any]]


@dataclass(frozen=True)
class Step:
    """One operation: on a stream, and on a function that makes a fresh iterator of plain Python."""

    text: str
    stream: Callable[[Stream[Any], Seen], Stream[Any]]
    plain: Callable[[Make, Seen], Make]

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Pipeline:
    """Items, in how many partitions they stand, and what happens to them."""

    items: list[Any]
    partitions: int
    steps: list[Step]

    def on(self, context: Any) -> tuple[Stream[Any], Seen]:
        """Return the stream on a context, and the lists that its `peek` steps will fill."""
        seen: Seen = []
        stream = context.stream(self.items, self.partitions)
        for step in self.steps:
            stream = step.stream(stream, seen)
        return stream, seen

    def in_plain_python(self) -> tuple[Iterator[Any], Seen]:
        """Return an iterator over the same items, and the lists that its `peek` steps will fill."""
        seen: Seen = []
        make: Make = lambda: iter(self.items)  # noqa: E731 - the type says what it is
        for step in self.steps:
            make = step.plain(make, seen)

        def items() -> Iterator[Any]:
            yield from make()  # here: windows read their first items when they are made, and a step may fail on these

        return items(), seen

    @property
    def reads_everything(self) -> bool:
        """Whether no step may stop reading early."""
        return not any(step.text.startswith((".limit", ".take_while")) for step in self.steps)


# Functions that work for every item


def size(item: Any) -> int:
    return len(repr(item))


def wrapped(item: Any) -> tuple[Any, ...]:
    return (item, None)


def nothing_if_short(item: Any) -> Any:
    return None if size(item) < 3 else item


def kind(item: Any) -> str:
    return type(item).__name__


def is_even(item: Any) -> bool:
    return size(item) % 2 == 0


def is_long(item: Any) -> bool:
    return size(item) > 2


def is_short(item: Any) -> bool:
    return size(item) < 7


def is_something(item: Any) -> bool:
    return item is not None


def twice(item: Any) -> tuple[Any, Any]:
    return (item, [item] and wrapped(item))


def some(item: Any) -> Iterable[Any] | None:
    return None if is_even(item) else range(size(item) % 4)


def emit_some(item: Any, emit: Callable[[Any], None]) -> None:
    for number in range(size(item) % 3):
        emit((number, item))


def refuse_four(item: Any) -> Any:
    if size(item) == 4:
        raise ArithmeticError(f"four characters: {item!r}")
    return item


def identity_of(item: Any) -> Any:
    """Return a key that is equal as dstream promises: as in a dict, and all NaN are one."""
    if isinstance(item, tuple):
        return tuple(map(identity_of, item))
    return "one NaN" if isinstance(item, float) and math.isnan(item) else item


# Steps


def _element_wise(text: str, stream: Callable[[Any], Any], plain: Callable[[Iterator[Any]], Iterator[Any]]) -> Step:
    return Step(text, lambda s, _: stream(s), lambda make, _: lambda: plain(make()))


def _map(fn: Callable[[Any], Any]) -> Step:
    return _element_wise(f".map({fn.__name__})", lambda s: s.map(fn), lambda items: map(fn, items))


def _filter(fn: Callable[[Any], Any]) -> Step:
    return _element_wise(f".filter({fn.__name__})", lambda s: s.filter(fn), lambda items: filter(fn, items))


def _flat_map(fn: Callable[[Any], Any]) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        return itertools.chain.from_iterable(fn(item) or () for item in items)

    return _element_wise(f".flat_map({fn.__name__})", lambda s: s.flat_map(fn), plain)


def _multi() -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        return ((number, item) for item in items for number in range(size(item) % 3))

    return _element_wise(".map_multi(emit_some)", lambda s: s.map_multi(emit_some), plain)


def _numeric(text: str, stream: Callable[[Any], Any], plain: Callable[[int], Any]) -> Step:
    return _element_wise(text, stream, lambda items: (plain(size(item)) for item in items))


def _distinct(key: Callable[[Any], Any] | None) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        known = set()
        for item in items:
            found = identity_of(item if key is None else key(item))
            if found not in known:
                known.add(found)
                yield item

    return _element_wise(f".distinct({key.__name__ if key else ''})", lambda s: s.distinct(key), plain)


def _sorted(key: Callable[[Any], Any], reverse: bool) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        yield from sorted(items, key=key, reverse=reverse)

    text = f".sorted({key.__name__}, reverse={reverse})"
    return _element_wise(text, lambda s: s.sorted(key, reverse=reverse), plain)


def _natural(reverse: bool) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        yield from sorted(map(repr, items), reverse=reverse)

    return _element_wise(f".map(repr).sorted(reverse={reverse})", lambda s: s.map(repr).sorted(reverse=reverse), plain)


def _limit(n: int) -> Step:
    return _element_wise(f".limit({n})", lambda s: s.limit(n), lambda items: itertools.islice(items, n))


def _skip(n: int) -> Step:
    return _element_wise(f".skip({n})", lambda s: s.skip(n), lambda items: itertools.islice(items, n, None))


def _take_while(fn: Callable[[Any], Any]) -> Step:
    name = f".take_while({fn.__name__})"
    return _element_wise(name, lambda s: s.take_while(fn), lambda items: itertools.takewhile(fn, items))


def _drop_while(fn: Callable[[Any], Any]) -> Step:
    name = f".drop_while({fn.__name__})"
    return _element_wise(name, lambda s: s.drop_while(fn), lambda items: itertools.dropwhile(fn, items))


def _sliding(n: int) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        listed = list(items)
        return iter([tuple(listed[i : i + n]) for i in range(max(len(listed) - n, 0) + 1 if listed else 0)])

    return _element_wise(f".gather(window_sliding({n}))", lambda s: s.gather(window_sliding(n)), plain)


def _chunked(n: int) -> Step:
    return _element_wise(f".chunked({n})", lambda s: s.chunked(n), lambda items: map(tuple, chunked(items, n)))


def _numbered() -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        return ((item, index) for index, item in enumerate(items))

    return _element_wise(".zip_with_index()", lambda s: s.zip_with_index(), plain)


def _without_four() -> Step:
    text = ".map(refuse_four).ignore(ArithmeticError)"
    return _element_wise(
        text,
        lambda s: s.map(refuse_four).ignore(ArithmeticError),
        lambda items: (item for item in items if size(item) != 4),
    )


def _peek() -> Step:
    def stream(upstream: Stream[Any], seen: Seen) -> Stream[Any]:
        seen.append([])
        return upstream.peek(seen[-1].append)

    def plain(make: Make, seen: Seen) -> Make:
        seen.append([])
        note = seen[-1].append
        return lambda: (item for item in make() if note(item) is None)

    return Step(".peek(see)", stream, plain)


def _twice_over() -> Step:
    def plain(make: Make, seen: Seen) -> Make:
        return lambda: itertools.chain(make(), (item for again in (make,) for item in again()))

    return Step(" + the same", lambda s, _: s + s, plain)


def _followed_by(other: list[Any], steps: list[Step]) -> Step:
    def stream(upstream: Stream[Any], seen: Seen) -> Stream[Any]:
        second = upstream._runtime.stream(other, 2)  # type: ignore[union-attr]
        for step in steps:
            second = step.stream(second, seen)
        return Stream.concat(upstream, second)

    def plain(make: Make, seen: Seen) -> Make:
        second: Make = lambda: iter(other)  # noqa: E731 - the type says what it is
        for step in steps:
            second = step.plain(second, seen)
        return lambda: itertools.chain(make(), (item for again in (second,) for item in again()))

    return Step(f" + {other}{''.join(map(repr, steps))}", stream, plain)


def _partitions(n: int | None) -> Step:
    return _element_wise(f".parallel({n})", lambda s: s.sequential() if n == 1 else s.parallel(n), iter)


def _zip_longest(other: list[Any]) -> Step:
    text = f".zip_longest({other})"
    return _element_wise(text, lambda s: s.zip_longest(other), lambda items: itertools.zip_longest(items, other))


def _interleave(other: list[Any]) -> Step:
    return _element_wise(
        f".interleave({other})", lambda s: s.interleave(other), lambda items: interleave_longest(items, other)
    )


def _cross(other: list[Any]) -> Step:
    return _element_wise(f".cross({other})", lambda s: s.cross(other), lambda items: itertools.product(items, other))


def _subtract(other: list[Any]) -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        return (item for item in items if identity_of(item) not in set(map(identity_of, other)))

    return _element_wise(f".subtract({other})", lambda s: s.subtract(other), plain)


def _sizes_by_kind() -> Step:
    def plain(items: Iterator[Any]) -> Iterator[Any]:
        sizes: Counter[str] = Counter()
        for item in items:
            sizes[kind(item)] += size(item)
        return iter(sizes.items())

    text = ".key_by(kind).map_values(size).reduce_by_key(add)"
    return _element_wise(text, lambda s: s.key_by(kind).map_values(size).reduce_by_key(operator.add).map(tuple), plain)


_ANY_ORDER = [
    *map(_map, (repr, wrapped, nothing_if_short, kind, size)),
    *map(_filter, (is_even, is_long, is_something)),
    *map(_flat_map, (twice, some)),
    _multi(),
    _numeric(
        ".map_to_int(size).map(int.__neg__).boxed()", lambda s: s.map_to_int(size).map(int.__neg__).boxed(), int.__neg__
    ),
    _numeric(".map_to_double(size).boxed()", lambda s: s.map_to_double(size).boxed(), float),
    _numeric(".map_to_long(size).as_double_stream()", lambda s: s.map_to_long(size).as_double_stream().boxed(), float),
    *map(_partitions, (1, 3, None)),
]
_IN_ORDER = [
    *map(_distinct, (None, kind, size, nothing_if_short)),
    *(_sorted(key, reverse) for key in (size, kind, repr) for reverse in (False, True)),
    *map(_natural, (False, True)),
    *map(_limit, (0, 1, 5, 40)),
    *map(_skip, (0, 2, 17)),
    *map(_take_while, (is_short, is_something)),
    *map(_drop_while, (is_short, is_something)),
    _element_wise(".pairwise()", lambda s: s.pairwise(), itertools.pairwise),
    _sliding(3),
    _chunked(4),
    _numbered(),
    _zip_longest([0, None, "z", 3]),
    _interleave([None, "i"]),
    _cross([1, None]),
    _without_four(),
    _peek(),
    _twice_over(),
]

_atoms = st.one_of(
    st.none(),
    st.integers(-12, 12),
    st.booleans(),
    st.text("abé", max_size=3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, math.inf, math.nan]),
)
_items = st.lists(st.one_of(_atoms, _atoms, st.tuples(_atoms, _atoms)), max_size=12)
_many_items = st.builds(lambda items, times: items * times, _items, st.sampled_from([1, 1, 1, 3, 60]))
_any_order = st.sampled_from(_ANY_ORDER)
_ordered_steps = st.one_of(
    _any_order,
    st.sampled_from(_IN_ORDER),
    st.builds(_followed_by, _items, st.lists(st.one_of(_any_order, st.sampled_from(_IN_ORDER)), max_size=2)),
)
_unordered = _element_wise(".unordered()", lambda s: s.unordered(), iter)
_unordered_steps = st.one_of(
    _any_order,
    st.sampled_from(
        [
            _sorted(repr, False),
            _subtract([None, 1, math.nan]),
            _sizes_by_kind(),
            _element_wise(
                ".map(repr).distinct()",
                lambda s: s.map(repr).distinct(),
                lambda items: iter(dict.fromkeys(map(repr, items))),
            ),
        ]
    ),
)


def _without_blow_up(pipeline: Pipeline) -> bool:
    """Keep pipelines whose items do not double too often."""
    return sum(step.text in {".flat_map(twice)", " + the same"} for step in pipeline.steps) < 4


def _pipelines(steps: st.SearchStrategy[list[Step]]) -> st.SearchStrategy[Pipeline]:
    return st.builds(Pipeline, _many_items, st.integers(1, 8), steps).filter(_without_blow_up)


def ordered_pipelines(most: int) -> st.SearchStrategy[Pipeline]:
    """Draw pipelines of up to `most` steps whose result has one order."""
    return _pipelines(st.lists(_ordered_steps, max_size=most))


def unordered_pipelines(most: int) -> st.SearchStrategy[Pipeline]:
    """Draw pipelines that are released from their order somewhere, so that the result is a multiset."""
    return _pipelines(
        st.builds(
            lambda before, after: [*before, _unordered, *after],
            st.lists(_ordered_steps, max_size=most // 2),
            st.lists(_unordered_steps, max_size=most // 2),
        )
    )


def failing_pipelines(most: int) -> st.SearchStrategy[Pipeline]:
    """Draw pipelines that read everything, with a step that fails for some items."""
    whole = st.sampled_from([step for step in _ANY_ORDER + _IN_ORDER if not step.text.startswith((".limit", ".take"))])
    return _pipelines(
        st.builds(
            lambda before, after: [*before, _map(refuse_four), *after],
            st.lists(whole, max_size=most // 2),
            st.lists(whole, max_size=most // 2),
        )
    )
