"""`Paired`: operations on two streams by position, membership or nearest value, and their second inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

from dstream.arguments import checked_function, choice, count, kind_of
from dstream.connectors.memory import Items
from dstream.plan import NO_CALL, Distinct, Read, Step, call_site, called, here, unchanged
from dstream.plan.operations.pairs import AsOf, Direction, HashJoin, SemiJoin, Zip, ZipMode, shown_keys
from dstream.plan.steps import no_key
from dstream.stream.base import BaseStream
from dstream.stream.shorthands import StreamOf
from dstream.values import Entry
from dstream.values.entries import key_of

if TYPE_CHECKING:
    from dstream.stream.objects import Stream

__all__ = ["ItemsOf", "On", "Paired", "PairsOf", "key_functions", "other_side"]


K = TypeVar("K")
V = TypeVar("V")
U = TypeVar("U")

ItemsOf: TypeAlias = BaseStream[U] | Sequence[U] | AbstractSet[U]
"""A side whose items are looked at as they are."""

PairsOf: TypeAlias = StreamOf[tuple[K, V]] | Mapping[K, V] | Sequence[tuple[K, V]]
"""A side of entries."""

On = Callable[[Any], Any] | tuple[Callable[[Any], Any], Callable[[Any], Any]] | None


def other_side(other: Any, call: str) -> BaseStream[Any]:
    """Return the other stream of an operation, or a stream of the collection or dict that was passed.

    Raises:
        TypeError: `other` is none of these.
    """
    if isinstance(other, BaseStream):
        return other
    # Collections are above this package, and recognized by their method.
    if hasattr(type(other), "stream") and isinstance(other, Mapping | Sequence | AbstractSet):
        collection: Any = other
        streamed: BaseStream[Any] = collection.stream()
        return streamed
    if isinstance(other, Mapping):
        return _read(_EntriesOf(other), f"stream({kind_of(other)})")
    if isinstance(other, list | tuple | range | set | frozenset):
        return _read(other, f"stream({kind_of(other)})")
    hint = ""
    if hasattr(type(other), "__iter__"):
        hint = "; Stream.from_iterable(...) makes a stream of any iterable"
    raise TypeError(
        f"{call}() takes two streams: other must be a stream, a map, a dict or a list, not {kind_of(other)}{hint}"
    )


def _read(items: Any, name: str) -> BaseStream[Any]:
    return BaseStream._kinds["Stream"](Read(Items(items), step=Step(name, call_site())), None)


class _EntriesOf(Sequence[Any]):
    """The entries of a dict, as it is when they are read."""

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        self._mapping = mapping

    def __len__(self) -> int:
        return len(self._mapping)

    def __iter__(self) -> Any:
        return (Entry(key, value) for key, value in self._mapping.items())

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


def key_functions(on: On, name: str = "on") -> tuple[Any, Any]:
    """Return the key function of each side, or None twice."""
    match on:
        case None:
            return None, None
        case (of_left, of_right):
            return checked_function(of_left, f"{name}[0]"), checked_function(of_right, f"{name}[1]")
        case tuple() | list():
            raise TypeError(f"{name} must be one key function or a pair of them, not {len(on)} of them")
    return checked_function(on, name), on


T = TypeVar("T")


F = TypeVar("F")

_DIRECTIONS = ("backward", "forward", "nearest")


class Paired(BaseStream[T]):
    """A stream that may be matched with another one.

    The other side is a stream of the same context, a map, a list or a set of it, a dict, whose entries are meant, or a
    list, tuple, range or set of the caller's.
    """

    __slots__ = ()

    # By position

    def zip(self, other: ItemsOf[U], strict: bool = False) -> Stream[tuple[T, U]]:
        """Pair the items at equal positions, up to the end of the shorter side.

        Ordered if both sides are. Costs one job that counts the items of each partition, which remain where they are,
        and one shuffle of both sides; two sides of one partition each take the shuffle alone. A task holds its part
        of the left side, on disk past the memory bound. One side may be infinite; on Spark, both if `limit(n)`
        follows at once.

        Args:
            other: the other side.
            strict: both sides must have the same length.

        Raises:
            ValueError: later, where the ends are read, if `strict` is set and one side is longer.

        Example:
            >>> Stream.of("Pequod", "Rachel").zip(Stream.iterate(1, lambda n: n + 1)).to_list()
            [('Pequod', 1), ('Rachel', 2)]
        """
        zipped: Stream[tuple[T, U]] = self._zipped(other, "strict" if choice(strict, "strict") else "shortest", "zip")
        return zipped

    @overload
    def zip_longest(self, other: ItemsOf[U], fillvalue: None = None) -> Stream[tuple[T | None, U | None]]: ...

    @overload
    def zip_longest(self, other: ItemsOf[U], fillvalue: F) -> Stream[tuple[T | F, U | F]]: ...

    def zip_longest(self, other: Any, fillvalue: Any = None) -> Any:
        """Pair the items at equal positions, up to the end of the longer side, with `fillvalue` for missing ones.

        Otherwise as `zip`.

        Example:
            >>> Stream.of("Pequod", "Rachel").zip_longest([30]).to_list()
            [('Pequod', 30), ('Rachel', None)]
        """
        return self._zipped(other, "longest", "zip_longest", fillvalue)

    def interleave(self, other: ItemsOf[U]) -> Stream[T | U]:
        """Interleave the items of both sides; after the end of one side, the other one continues.

        Costs what `zip` costs.

        Example:
            >>> Stream.of(1, 3, 5, 6).interleave([2, 4]).to_list()
            [1, 2, 3, 4, 5, 6]
        """
        turns: Stream[T | U] = self._zipped(other, "interleaved", "interleave")
        return turns

    def cross(self, other: ItemsOf[U], *, broadcast_limit: int | None = None) -> Stream[tuple[T, U]]:
        """Pair each item with each one of the other side, in the order of `itertools.product`.

        The other side is sent to every task, so it must not be large. Nothing else moves, and this side may be
        infinite.

        Args:
            other: the other side.
            broadcast_limit: how many bytes it may have; unset, the limit of the context.

        Raises:
            UnsupportedError: later, where the other side is larger.

        Example:
            >>> Stream.of("a", "b").cross([1, 2]).to_list()
            [('a', 1), ('a', 2), ('b', 1), ('b', 2)]
        """
        limit = None if broadcast_limit is None else count(broadcast_limit, "broadcast_limit")
        right = other_side(other, "cross")
        node = HashJoin(
            self._node, right._node, no_key, no_key, is_inner=True, broadcast_limit=limit, step=called("cross", "...")
        )
        crossed: Any = self._combined(BaseStream._kinds["Stream"], node, right)
        return crossed  # type: ignore[no-any-return]

    # By membership

    def intersection(self, other: ItemsOf[T]) -> Self:
        """Keep the items that the other side has too, each once.

        Items are equal as in a set, and every NaN is one item. The result has no order. Costs what `semi_join` costs,
        and one shuffle of the items that it keeps, each task's duplicates removed.

        Raises:
            UnstableKeyError: later, where an item has no hash, or is hashed by identity.

        Example:
            >>> sorted(Stream.of(3, 1, 2, 3).intersection([3, 2, 9]).to_list())
            [2, 3]
        """
        right = other_side(other, "intersection")
        common = SemiJoin(self._node, right._node, unchanged, unchanged, step=called("intersection", "..."))
        return self._combined(type(self), Distinct(common, step=NO_CALL), right)

    def subtract(self, other: ItemsOf[Any]) -> Self:
        """Remove the items that the other side has; duplicates are kept.

        Items are equal as in a set, and every NaN is one item. The result has no order. Costs what `semi_join` costs.

        Raises:
            UnstableKeyError: later, where an item has no hash, or is hashed by identity.

        Example:
            >>> Stream.of(3, 1, 2, 1).subtract([3, 2, 9]).to_list()
            [1, 1]
        """
        return self._looked_up(other, (unchanged, unchanged), "subtract", is_anti=True)

    @overload
    def semi_join(self, other: PairsOf[Any, Any], on: None = None) -> Self: ...

    @overload
    def semi_join(self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> Self: ...

    @overload
    def semi_join(self, other: ItemsOf[U], on: Callable[[T | U], Any]) -> Self: ...

    def semi_join(self, other: Any, on: Any = None) -> Self:
        """Keep the items whose keys the other side has, each once, however often it has them.

        The result has no order. On Spark the keys of a small other side travel to the tasks of this one, and nothing
        else moves; otherwise one shuffle brings equal keys together: never more than `join` costs, for of the other
        side only the keys move. A task buffers the keys, on disk past the memory bound. This side may be infinite where
        the other one is small.

        Args:
            other: the other side.
            on: None if both sides are entries, which are compared by their keys; else the key function of both sides,
                or one for each: `(of_left, of_right)`.

        Raises:
            IllegalStateError: the streams belong to different contexts; later, the other side never ends.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.

        Example:
            >>> crews = Stream.of(("Pequod", 30), ("Rachel", 26))
            >>> crews.semi_join({"Pequod": "Pacific"}).to_list()
            [('Pequod', 30)]
        """
        return self._looked_up(other, key_functions(on), "semi_join", is_anti=False)

    @overload
    def anti_join(self, other: PairsOf[Any, Any], on: None = None) -> Self: ...

    @overload
    def anti_join(self, other: ItemsOf[U], on: tuple[Callable[[T], K], Callable[[U], K]]) -> Self: ...

    @overload
    def anti_join(self, other: ItemsOf[U], on: Callable[[T | U], Any]) -> Self: ...

    def anti_join(self, other: Any, on: Any = None) -> Self:
        """Keep the items whose keys the other side does not have; otherwise as `semi_join`.

        Example:
            >>> Stream.of("sea", "whale").anti_join([3], on=(len, int)).to_list()
            ['whale']
        """
        return self._looked_up(other, key_functions(on), "anti_join", is_anti=True)

    # By the nearest value

    @overload
    def asof_join(
        self,
        other: ItemsOf[U],
        on: tuple[Callable[[T], Any], Callable[[U], Any]],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> Stream[tuple[T, U | None]]: ...

    @overload
    def asof_join(
        self,
        other: ItemsOf[U],
        on: Callable[[T | U], Any],
        by: tuple[Callable[[T], K], Callable[[U], K]] | Callable[[T | U], Any] | None = None,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> Stream[tuple[T, U | None]]: ...

    def asof_join(
        self, other: Any, on: Any, by: Any = None, direction: Direction = "backward", tolerance: Any = None
    ) -> Any:
        """Pair each item with the nearest one of the other side, such as a trade with the last quote: `(left, right)`.

        An item without a match is paired with None. The result has no order. Costs one shuffle of both sides by `by`;
        each task sorts its part of both, on disk past the memory bound. Without `by`, one task does all.

        Args:
            other: the other side.
            on: returns the position of an item, such as its time: a function for both sides, or one for each. Positions
                must be comparable; for `tolerance` and `"nearest"` also subtractable.
            by: items match only if this returns equal keys: one function, or one for each side.
            direction: `"backward"` takes the last right item at or before the position of the left one, the last one on
                ties; `"forward"` the first one at or after it, the first one on ties; `"nearest"` the nearer of both,
                the earlier one if they are equally far.
            tolerance: the greatest distance between the positions, such as a `timedelta`; unset, there is no limit.

        Raises:
            IllegalStateError: the streams belong to different contexts; later, one of them never ends.
            UnstableKeyError: later, where a key has no hash, or is hashed by identity.
            ValueError: `tolerance` is negative or NaN; later, a position is None or NaN.

        Example:
            >>> trades, quotes = Stream.of((5, "buy"), (1, "sell")), [(2, 10.0), (4, 10.5)]
            >>> trades.asof_join(quotes, on=lambda item: item[0]).sorted().to_list()
            [((1, 'sell'), None), ((5, 'buy'), (4, 10.5))]
        """
        if direction not in _DIRECTIONS:
            raise ValueError(f"direction must be one of {', '.join(_DIRECTIONS)}, not {direction!r}")
        if on is None:
            raise TypeError("on must be a function that gives the place of an item, or one for each side, not None")
        right = other_side(other, "asof_join")
        left_key, right_key = (no_key, no_key) if by is None else key_functions(by, "by")
        left_on, right_on = key_functions(on)
        node = AsOf(
            self._node,
            right._node,
            left_key,
            right_key,
            left_on=left_on,
            right_on=right_on,
            direction=direction,
            tolerance=_tolerance(tolerance),
            has_by=by is not None,
            step=here(),
        )
        return self._combined(BaseStream._kinds["Stream"], node, right)

    # How they are made

    def _zipped(self, other: Any, how: ZipMode, call: str, fill: Any = None) -> Any:
        right = other_side(other, call)
        node = Zip(self._node, right._node, how=how, fill=fill, step=here())
        return self._combined(BaseStream._kinds["Stream"], node, right)

    def _looked_up(self, other: Any, keys: tuple[Any, Any], call: str, *, is_anti: bool) -> Self:
        right = other_side(other, call)
        of_left, of_right = (key_of if key is None else key for key in keys)
        shown = shown_keys("on", *keys) if keys[0] is not unchanged else []
        node = SemiJoin(self._node, right._node, of_left, of_right, is_anti, step=called(call, "...", *shown))
        return self._combined(type(self), node, right)


def _tolerance(value: Any) -> Any:
    """Return a tolerance if it is a distance.

    Raises:
        TypeError: it cannot be compared with its absolute value.
        ValueError: it is negative or NaN.
    """
    if value is None:
        return None
    try:
        # A NaN is no distance, since it is not greater than or equal to itself.
        is_distance = bool(value >= abs(value))
    # Whatever a user's class raises, there is no distance.
    except Exception:
        raise TypeError(f"tolerance must be a number or a timedelta, not {kind_of(value)}") from None
    if isinstance(value, bool):
        raise TypeError("tolerance must be a number or a timedelta, not bool")
    if not is_distance:
        raise ValueError(f"tolerance must be a distance that is not negative: {value!r}")
    return value
