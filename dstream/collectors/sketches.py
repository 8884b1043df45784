"""Collectors that estimate in little memory: quantiles, and the number of distinct items.

The sketches are those of Apache DataSketches (the package `datasketches`, in the extra `sketches`).
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from numbers import Real
from typing import Any, TypeVar

from dstream.arguments import checked_function
from dstream.collectors.arguments import checked_places, named
from dstream.collectors.arithmetic import Numbers, doubles
from dstream.collectors.batches import Batched, Prepared, batches, kinds
from dstream.errors import SetupError
from dstream.keys import canonical, compared_fields, has_generated_eq, stable_hash
from dstream.spi import Characteristics, Collector

__all__ = ["approx_count_distinct", "quantiles"]

T = TypeVar("T")


@named
def quantiles(
    fractions: Iterable[float], fn: Callable[[T], float] | None = None, *, accuracy: float = 0.007
) -> Collector[T, object, list[float]]:
    """Estimate the quantiles of the results of `fn` for each item, in one pass and little memory.

    For a fraction f the estimate is one of the numbers: the least that at least the share f of them
    does not exceed. 0 and 1 are exact, and so are all estimates up to a few hundred numbers. Beyond that, in 99
    of 100 cases, the share is off by at most `accuracy` (KLL sketch), and may differ a little from run to run
    and with the split. NaN are left out.

    The error is one of ranks: the estimate lies between the exact quantiles of f - accuracy and f + accuracy,
    and how far apart these values are depends on the numbers. Of numbers spread evenly from 0 to 1,000,
    the default is off by at most 7. If few numbers are far from the others, as often near the ends, it
    may be off by their distance. `percentiles` and `median` are exact and store all numbers.

    Args:
        fractions: from 0 (the least number) over 0.5 (the median) to 1 (the greatest).
        fn: returns a number; without it the items are the numbers.
        accuracy: the maximum error of the share, from 0.00005 up; the memory grows as it shrinks: 10 KB for 0.007,
            100 KB for 0.0006, 1 MB for 0.00006.

    Returns:
        A collector of one float for each fraction; NaN each if there were no numbers.

    Raises:
        SetupError: the package `datasketches` is not installed.
        TypeError: a fraction is no number; when it runs: a value is no number.
        ValueError: a fraction is not between 0 and 1, or `accuracy` is not between 0.00005 and 1.

    Example:
        >>> quantiles([0.5, 0.9]).collect(range(1, 101))
        [50.0, 90.0]
    """
    _check_library("quantiles")
    shares = checked_places(fractions, 1, "fractions")
    if fn is not None:
        checked_function(fn, "fn")
    taken = doubles("quantiles")
    collector: Collector[Any, Any, Any] = Collector(
        partial(_Ranks, _sketch_size(accuracy)),
        partial(_add_number, taken, fn),
        _Ranks.merge,
        partial(_quantiles_of, shares),
        accumulate_all=Prepared(partial(taken.every, fn), _Ranks.add, _Ranks.add_all),
    )
    return collector


_QUANTILE_SIZES = range(8, 65_536)
"""The bounds of KLL's k: the larger, the more accurate; 388 for 0.7 percentage points, in about 10 KB."""


def _sketch_size(accuracy: float) -> int:
    """Return the least k whose error is no larger."""
    if isinstance(accuracy, bool) or not isinstance(accuracy, Real):
        raise TypeError(f"accuracy must be a number, not {type(accuracy).__name__}")
    if not 0.00005 <= accuracy < 1:
        raise ValueError(
            f"accuracy must lie between 0.00005 and 1, not {accuracy!r}; percentiles() and median() are exact"
        )
    sketch = _library().kll_doubles_sketch
    # Negative, since the error decreases with k and `bisect_left` needs ascending values.
    return bisect_left(_QUANTILE_SIZES, -accuracy, key=lambda k: -sketch.get_normalized_rank_error(k, False)) + 8


def _add_number(taken: Numbers, fn: Callable[[Any], Any] | None, ranks: _Ranks, item: Any) -> None:
    ranks.add(taken.one(item if fn is None else fn(item), item))


def _quantiles_of(shares: list[float], ranks: _Ranks) -> list[float]:
    return ranks.quantiles(shares)


class _Ranks(Batched[float]):
    """A KLL sketch, created when the first batch is full, since a grouping has one for each key."""

    __slots__ = ("_size", "_sketch")

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._sketch: Any = None

    def quantiles(self, shares: list[float]) -> list[float]:
        self.settle()
        if self._sketch is None or self._sketch.is_empty():
            return [math.nan] * len(shares)
        # The sketch stores its exact ends, but its quantiles of the ranks 0 and 1 are estimates, too.
        ends = {0.0: self._sketch.get_min_value(), 1.0: self._sketch.get_max_value()}
        estimates = self._sketch.get_quantiles(shares, True)
        return [ends.get(share, estimate) for share, estimate in zip(shares, estimates, strict=True)]

    def _take(self, values: list[float]) -> None:
        sketch = self._made()
        for value in values:
            sketch.update(value)

    def _take_from(self, other: _Ranks) -> None:
        if other._sketch is not None:
            self._made().merge(other._sketch)

    def _made(self) -> Any:
        if self._sketch is None:
            self._sketch = _library().kll_doubles_sketch(self._size)
        return self._sketch

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_ranks, (self._size, self._pending, self._sketch and self._sketch.serialize())


def _restored_ranks(size: int, pending: list[float], data: bytes | None) -> _Ranks:
    ranks = _Ranks(size)
    ranks._pending = pending
    if data is not None:
        ranks._sketch = _library().kll_doubles_sketch.deserialize(data)
    return ranks


@named
def approx_count_distinct() -> Collector[Any, object, int]:
    """Estimate how many distinct items there are, in one pass and about 10 KB.

    Items are distinct as keys of a dict are: `1`, `1.0` and `True` are one, and so are all NaN; None
    counts as an item. The standard error is 0.55 % (CPC sketch of 2**14 rows; three in 1,000 estimates
    are off by more than 1.7 %), and less for small numbers. The estimate depends on the set of items
    only, not on their order, number or split.

    Raises:
        SetupError: the package `datasketches` is not installed.
        UnstableKeyError: an item has no hash, or one that depends on its identity.

    Example:
        >>> approx_count_distinct().collect(["a", "b", "a"])
        2
    """
    _check_library("approx_count_distinct")
    collector: Collector[Any, Any, Any] = Collector(
        _Distinct,
        _add_item,
        _Distinct.merge,
        _Distinct.estimate,
        frozenset({Characteristics.UNORDERED}),
        _add_items,
    )
    return collector


def _add_item(distinct: _Distinct, item: Any) -> None:
    distinct.add(_token(canonical(item)))


def _add_items(distinct: _Distinct, items: Iterable[Any]) -> _Distinct:
    for batch in batches(items):
        # Equal strings are sketched once for each batch: a set finds them at the speed of C.
        distinct.add_all([_token(canonical(item)) for item in (set(batch) if kinds(batch) == {str} else batch)])
    return distinct


_DISTINCT_SIZE = 14
"""The binary logarithm of CPC's number of rows: a standard error of 0.55 %, in about 10 KB."""


class _Distinct(Batched[str | int]):
    """A CPC sketch of tokens; made when the first batch is full."""

    __slots__ = ("_sketch",)

    def __init__(self) -> None:
        super().__init__()
        self._sketch: Any = None

    def estimate(self) -> int:
        self.settle()
        if self._sketch is None:
            return 0
        # A sketch that was never merged estimates by the order of its items; a union never does.
        union = _library().cpc_union(_DISTINCT_SIZE)
        union.update(self._sketch)
        estimate: float = union.get_result().get_estimate()
        return round(estimate)

    def _take(self, values: list[str | int]) -> None:
        if self._sketch is None:
            self._sketch = _library().cpc_sketch(_DISTINCT_SIZE)
        for value in values:
            self._sketch.update(value)

    def _take_from(self, other: _Distinct) -> None:
        if self._sketch is None or other._sketch is None:
            self._sketch = self._sketch or other._sketch
            return
        union = _library().cpc_union(_DISTINCT_SIZE)
        union.update(self._sketch)
        union.update(other._sketch)
        self._sketch = union.get_result()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_distinct, (self._pending, self._sketch and self._sketch.serialize())


def _restored_distinct(pending: list[str | int], data: bytes | None) -> _Distinct:
    distinct = _Distinct()
    distinct._pending = pending
    if data is not None:
        distinct._sketch = _library().cpc_sketch.deserialize(data)
    return distinct


def _check_library(factory: str) -> None:
    """Refuse a missing library at the call, rather than in a worker.

    Raises:
        SetupError: it is not installed; it has no wheels for some versions of Python.
    """
    if find_spec("datasketches") is None:
        from dstream.base.environment import pip_install  # `import dstream` loads this module

        raise SetupError(f"{factory}() needs Apache DataSketches, which is not installed: {pip_install('sketches')}")


def _library() -> Any:
    # Imported here and not above: it loads numpy, which takes longer than all of `import collectors`.
    import datasketches  # type: ignore[import-untyped]

    return datasketches


def _token(key: Any) -> str | int:
    """Return a string or a small int that equal canonical keys share, in any process.

    Strings and numbers do not rely on `PYTHONHASHSEED`. Tuples and dataclasses are taken apart, since
    the hashes of (-1,) and (-2,) are equal. What is not a plain string starts with a zero byte.
    """
    if isinstance(key, str):
        return _text_token(key)
    if isinstance(key, Real | Decimal):
        return _number_token(key)
    if isinstance(key, bytes):
        return "\0bytes" + key.decode("latin-1")
    if isinstance(key, tuple) and type(key).__hash__ is tuple.__hash__:
        return f"\0tuple{[_token(part) for part in key]!r}"
    if isinstance(key, frozenset):
        return f"\0set{sorted(repr(_token(part)) for part in key)!r}"
    if dataclasses.is_dataclass(key) and not isinstance(key, type) and has_generated_eq(type(key)):
        return f"\0{type(key).__qualname__}{[_token(part) for part in _compared(key)]!r}"
    return f"\0{type(key).__qualname__} {stable_hash(key)}"


def _text_token(text: str) -> str:
    if not text:
        return "\0empty"  # DataSketches leaves empty strings out
    if text.isascii():
        return str.__str__(text)
    # Half of a surrogate pair has no UTF-8 form, which DataSketches needs.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def _number_token(number: Any) -> str | int:
    """Return one token for equal numbers of any type, and two for -1 and -2, whose hashes are equal."""
    if -(2**60) < number < 2**60 and number == int(number):
        return int(number)
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf
    if nearest != nearest:
        return "\0nan"
    return f"\0number {hash(number)} {nearest!r}"


def _compared(key: Any) -> Sequence[Any]:
    kind: Any = type(key)
    return [canonical(getattr(key, name)) for name in compared_fields(kind)]
