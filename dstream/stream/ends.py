"""`Ends` and `Tabular`: terminal operations, caches, and streams as tables of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from dstream import collectors
from dstream.arguments import checked_function
from dstream.errors import IllegalStateError
from dstream.plan import Cache, Collect, Columns, Limit, Loop, called, explained, here, shown_function
from dstream.stream.base import BaseStream
from dstream.stream.reductions import latest, latest_by_key
from dstream.stream.shorthands import StreamOf
from dstream.values import Optional

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from dstream.stream.summaries import Description, Histogram

__all__ = ["Ends", "EndsOfPairs", "Tabular"]


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Ends(BaseStream[T]):
    """The terminal operations that return items, groups, or statistics."""

    __slots__ = ()

    def first(self) -> Optional[T]:
        """Return the first item, also one that is None, reading no further; `find_first()` refuses a None.

        Example:
            >>> Stream.of(None, 2).first(), Stream.empty().first()
            (Optional[None], Optional.empty)
        """
        limited = Limit(self._node, 1, step=called("first"))
        with explained(limited, "first"):
            return _first(list(self._result(Loop(limited))))

    def last(self) -> Optional[T]:
        """Return the last item, also one that is None; of an unordered stream, any item. Reads all of them.

        Example:
            >>> Stream.of("sea", "whale").last()
            Optional['whale']
        """
        node = Collect(self._node, latest(), step=called("last"))
        with explained(node, "last"):
            return _first(self._result(node, needs_end=True))

    def to_set(self) -> set[T]:
        """Return the distinct items as a set; they must fit into the caller's memory. Every NaN is one item.

        Raises:
            TypeError: an item has no hash.

        Example:
            >>> sorted(Stream.of("b", "a", "b").to_set())
            ['a', 'b']
        """
        items: Any = self._collect(collectors.to_set(), "to_set")
        found: set[T] = items
        return found

    def group_by(self, fn: Callable[[T], K]) -> dict[K, list[T]]:
        """Return a dict of the items by the result of `fn` for each: the same as `collect(grouping_by(fn))`.

        All items are sent to the caller; `collect(grouping_by(fn, downstream))` reduces the items of a key first.

        Raises:
            NullElementError: an item has a None key.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of("sea", "whale", "sky").group_by(len)
            {3: ['sea', 'sky'], 5: ['whale']}
        """
        arguments = shown_function(checked_function(fn, "fn"))
        groups: dict[K, list[T]] = self._collect(collectors.grouping_by(fn), "group_by", arguments)
        return groups

    def count_by(self, fn: Callable[[T], K]) -> dict[K, int]:
        """Return a dict of the number of items per key, which `fn` returns; combined before the shuffle.

        The same as `collect(grouping_by(fn, counting()))`; `frequencies()` counts the items themselves.

        Raises:
            NullElementError: an item has a None key.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of("sea", "whale", "sky").count_by(len)
            {3: 2, 5: 1}
        """
        arguments = shown_function(checked_function(fn, "fn"))
        counts: dict[K, int] = self._collect(collectors.grouping_by(fn, collectors.counting()), "count_by", arguments)
        return counts

    def describe(self) -> Description:
        """Describe the numbers, as floats: count, mean, sample deviation, min, quartiles and max, in one pass.

        A terminal and a notebook show the result as a table. The quartiles are exact: every number travels to the
        caller in 8 bytes, and beyond two million they lie on disk. One NaN makes all but the count NaN.

        Raises:
            TypeError: an item is no number; the message names it.

        Example:
            >>> Stream.of(1, 2, 3, 4).describe()
            count                 4
            mean                2.5
            deviation       1.29099
            min                   1
            lower quartile     1.75
            median              2.5
            upper quartile     3.25
            max                   4
        """
        from dstream.stream.summaries import describing  # Imported lazily: few streams are described.

        return self._collect(describing(), "describe")

    def histogram(self, bins: int | Iterable[float] = 10) -> Histogram:
        """Count the numbers, as floats, in bins; a terminal and a notebook show a picture of the result.

        With a number of bins the stream runs twice: first for the least and the greatest number, between which the
        bins have equal width. `cache()` before it lets the steps run once. With edges it runs once.

        Args:
            bins: their number, or their edges in ascending order. A bin includes its lower edge, the last one both
                edges.

        Raises:
            IllegalStateError: the stream gave other numbers when it ran again.
            TypeError: an item is no number, or `bins` is neither an int nor numbers.
            ValueError: there is no bin, edges do not ascend, or a number is infinite and no edges are passed.

        Example:
            >>> Stream.of(1, 2, 2, 3, 3, 3, 9).histogram(4)
            1 .. 3 3 ████████████████████████████████████████
            3 .. 5 3 ████████████████████████████████████████
            5 .. 7 0
            7 .. 9 1 ██████████████
        """
        from dstream.stream import summaries as of  # Imported lazily: few streams are drawn.

        chosen = of.checked_bins(bins)
        if isinstance(chosen, tuple):
            return self._collect(of.counting_in(chosen), "histogram", f"{len(chosen)} edges")
        # A separate pass, since the edges depend on the least and the greatest number.
        span = self._collect(of.spanning(), "histogram", str(chosen))
        edges = of.edges_between(span.min, span.max, chosen)
        histogram = self._collect(of.counting_in(edges), "histogram", str(chosen))
        if sum(histogram.counts) != span.count:
            raise IllegalStateError(
                f"histogram({chosen}) ran the stream twice, and it did not give the same numbers: cache() keeps them"
            )
        return histogram


class EndsOfPairs(Ends[T]):
    """A stream that may be asked for a dict, if its items are entries or other pairs."""

    __slots__ = ()

    def to_dict(self: StreamOf[tuple[K, V]]) -> dict[K, V]:
        """Return a dict of the pairs, as `dict(pairs)` does: the last value of a key wins.

        Keys are equal as in a dict, and every NaN is one key; keys and values may be None. On an unordered stream any
        value of a key may win. Each partition holds one value for each of its keys in memory.

        Raises:
            TypeError: an item is no pair.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26), ("Pequod", 31)).to_dict()
            {'Pequod': 31, 'Rachel': 26}
        """
        found: dict[K, V] = _of(self)._collect(latest_by_key(), "to_dict")
        return found

    @overload
    def to_map(self: StreamOf[tuple[K, V]], *, merge: Callable[[V, V], V | None] | None = None) -> dict[K, V]: ...

    @overload
    def to_map(
        self, key: Callable[[T], K], value: Callable[[T], V], merge: Callable[[Any, Any], Any] | None = None
    ) -> dict[K, V]: ...

    def to_map(self: Any, key: Any = None, value: Any = None, merge: Any = None) -> Any:
        """Return a dict of one value for each key: the same as `collect(to_map(key, value, merge))`.

        Each partition holds one value for each of its keys in memory, the caller those of all keys.

        Args:
            key: returns the key of an item; without `key` and `value` the items are entries or other pairs.
            value: returns its value.
            merge: merges two values of a key; without it a repeated key is an error.

        Raises:
            IllegalStateError: two items have one key, and there is no `merge`; the message names it.
            NullElementError: a value is None.
            UnstableKeyError: a key has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(("Pequod", 30), ("Rachel", 26)).to_map()
            {'Pequod': 30, 'Rachel': 26}
            >>> Stream.of("sea", "sky").to_map(len, str.upper, max)
            {3: 'SKY'}
        """
        collector = collectors.to_map(key, value, merge)
        functions = [shown_function(each) for each in (key, value, merge) if each is not None]
        return self._collect(collector, "to_map", ", ".join(functions))


def _of(stream: Any) -> Any:
    return stream


def _first(found: list[T]) -> Optional[T]:
    return Optional.of_item(found[0]) if found else Optional.empty()


class Tabular(BaseStream[T]):
    """The operations that cache items, or turn them into columns."""

    __slots__ = ()

    def cache(self) -> Self:
        """Compute the items once, when the first terminal operation needs them, and cache them for later ones.

        They remain where they were computed, in memory, and on disk past the memory bound, until no stream reads them
        any more, or their context is closed. The functions before this step run once for each item, even if a later
        operation needs the first item only.

        Example:
            >>> squares = Stream.of(1, 2, 3).peek(print).map(lambda n: n * n).cache()
            >>> squares.count(), squares.to_list()
            1
            2
            3
            (3, [1, 4, 9])
        """
        return self._then(Cache(self._node, step=here()))

    def to_arrow(self) -> pa.Table:
        """Return the items as a `pyarrow.Table`, in encounter order; it must fit into the caller's memory.

        The fields of dataclasses and named tuples, the keys of dicts and the positions of tuples (`_1`, `_2`, ...)
        are columns; other items are the one column `value`. Types follow the values, and the annotations of fields; any
        column may contain None. An empty stream has no columns.

        Raises:
            TypeError: the items have no common columns, or Arrow has no type for a value.

        Example:
            >>> Stream.of(Entry("whale", 3), Entry("sea", 12)).to_arrow().to_pydict()
            {'key': ['whale', 'sea'], 'value': [3, 12]}
        """
        node = Columns(self._node, step=called("to_arrow"))
        with explained(node, "to_arrow"):
            table: pa.Table = self._result(node, needs_end=True)
            return table

    def to_pandas(self) -> pd.DataFrame:
        """Return the items as a `pandas.DataFrame`; columns as for `to_arrow`, which pandas then converts.

        A column of ints in which one is None is one of pandas' `Int64`; fields of dataclasses and dicts are dicts.
        """
        from dstream.schema.tables import data_frame

        node = Columns(self._node, step=called("to_pandas"))
        with explained(node, "to_pandas"):
            return data_frame(self._result(node, needs_end=True))

    def to_df(self) -> Any:
        """Return the items as a Spark DataFrame; columns as for `to_arrow`.

        The stream runs now, once, and its items remain on the workers, where the DataFrame reads them. The DataFrame
        has no guaranteed order.

        Raises:
            UnsupportedError: the engine has no DataFrames.
            TypeError: the items have no common columns, or Arrow has no type for a value.
        """
        node = Columns(self._node, is_frame=True, step=called("to_df"))
        with explained(node, "to_df"):
            return self._result(node, needs_end=True)
