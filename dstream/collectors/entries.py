"""Collectors behind the operations on streams of entries.

They replace aggregates whose items are entries or pairs. None is a valid key and value.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dstream.base.functions import refuse_awaitable
from dstream.base.showing import shown
from dstream.collectors.adapting import mapping
from dstream.collectors.arithmetic import counting
from dstream.collectors.batches import batches, kinds
from dstream.collectors.groups import AnyKeys, count_batch, groups_of_any_key
from dstream.failures.attribution import each, failed_on, given
from dstream.keys import canonical_all, canonical_keys
from dstream.spi import Collector, InColumns, Keyed, added_ints, identity
from dstream.values import Entry
from dstream.values.entries import Pairs, key_of, value_of

__all__ = ["counted_entries", "folded_values", "values_of_each_key"]


Groups = dict[Any, Any]
"""The container of each key."""


def values_of_each_key(downstream: Collector[Any, Any, Any]) -> Collector[Any, Any, Groups]:
    """Collect the values of each key downstream.

    Example:
        >>> from collectors import to_list
        >>> values_of_each_key(to_list()).collect([("a", 1), ("b", 2), ("a", 3)])
        {'a': [1, 3], 'b': [2]}
    """
    made = groups_of_any_key(_KEYS, mapping(value_of, downstream))
    return replace(made, functions=downstream.functions)  # The function of the value is not a user's.


def counted_entries() -> Collector[Any, Any, Groups]:
    """Count the entries of each key.

    Example:
        >>> counted_entries().collect([("a", 1), ("b", 2), ("a", 3)])
        {'a': 2, 'b': 1}
    """
    counts = groups_of_any_key(_KEYS, counting())
    known = counts.on_columns()
    assert known is not None, "counts are known to columns"
    return replace(counts, accumulate_all=_count_entries, in_columns=replace(known, same_as=_count_entries))


def _count_entries(groups: Counter[Any], items: Iterable[Any]) -> Counter[Any]:
    for batch in _batches(items):
        count_batch(_KEYS, groups, _KEYS.given(batch), batch)
    return groups


def _batches(items: Iterable[Any]) -> Iterable[Sequence[Any]]:
    """Split entries into batches; pairs with one common value are not split."""
    return (items,) if type(items) is Pairs else batches(items)


def folded_values(op: Callable[[Any, Any], Any]) -> Collector[Any, Any, Groups]:
    """Fold the values of each key with an associative operator, in encounter order.

    Example:
        >>> folded_values(max).collect([("a", 1), ("b", 2), ("a", 3)])
        {'a': 3, 'b': 2}
    """
    sums = added_ints(value_of, identity) if op is operator.add else None
    one = _Folded(_nothing, _never, partial(_applied, op), in_columns=sums)
    fold_all = partial(_fold_all, op)
    # A Counter adds ones at the speed of C. It contains only ints; a dictionary replaces it for other values.
    return Collector(
        Counter if op is operator.add else dict,
        partial(_fold_one, op),
        partial(_combine, op),
        accumulate_all=fold_all,
        keyed=Keyed(key_of, one, dict),
        in_columns=None
        if sums is None
        else InColumns("groups", of=key_of, downstream=sums, same_as=fold_all, is_fold=True),
        functions=(("op", op),),
    )


class _Folded(Collector[Any, Any, Any]):
    """Folded values are their own containers, and None is one of them: the result of the operator is not converted."""

    def combined(self, left: Any, right: Any) -> Any:
        return self.combiner(left, right)


def _applied(op: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    try:
        return op(left, right)
    except Exception as error:
        given(error, f"when op was given {shown(left)} and {shown(right)}")
        raise


def _fold_all(op: Callable[[Any, Any], Any], groups: Groups, items: Iterable[Any]) -> Groups:
    for batch in _batches(items):
        keys, values = _columns(batch)
        if type(groups) is Counter:
            found = {type(batch.value)} if type(batch) is Pairs else kinds(values)
            if found == {int} and values.count(1) == len(values):
                count_batch(_KEYS, groups, keys, batch)
                continue
            if found != {int}:
                groups = dict(groups)
        _fold_each(op, groups, canonical_keys(keys, batch), values, batch)
    return groups


def _columns(batch: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the keys and the values of entries."""
    if type(batch) is Pairs:
        return batch.keys, [batch.value] * len(batch)
    if not kinds(batch) <= _ENTRIES:
        each(key_of, batch)
    try:
        return [key for key, _ in batch], [value for _, value in batch]
    except ValueError:  # An item has not two parts.
        each(key_of, batch)
        raise


_ENTRIES = {Entry, tuple}


class _KeysOfEntries(AnyKeys):
    """The keys that entries have."""

    def functions(self) -> Sequence[tuple[str, Callable[[Any], Any]]]:
        """Return none: the function of the key is none of the user's."""
        return ()

    def given(self, batch: Sequence[Any]) -> list[Any]:
        return _columns(batch)[0]


_KEYS = _KeysOfEntries(key_of)


def _fold_each(
    op: Callable[[Any, Any], Any], groups: Groups, keys: list[Any], values: list[Any], batch: Sequence[Any]
) -> None:
    folded = None
    for item, key, value in zip(batch, keys, values, strict=True):
        if key not in groups:
            groups[key] = value
            continue
        try:
            groups[key] = folded = op(groups[key], value)
        except Exception as error:
            given(error, f"when op was given {shown(groups[key])} and {shown(value)}")
            failed_on(error, item)
            raise
    # Once for all: each result of an async operator is a coroutine.
    refuse_awaitable(folded)


def _fold_one(op: Callable[[Any, Any], Any], groups: Groups, item: Any) -> Groups:
    return _fold_all(op, groups, [item])


def _combine(op: Callable[[Any, Any], Any], left: Groups, right: Groups) -> Groups:
    # A Counter stores ints alone, and the other side has met another value (`_fold_all`).
    if type(left) is not type(right):
        left = dict(left)
    keys = canonical_all(list(right))
    for key, value in zip(keys, right.values(), strict=True):
        left[key] = _applied(op, left[key], value) if key in left else value
    return left


def _nothing() -> Any:
    """Raise: placeholder of the container of a key without items, which does not exist."""
    raise AssertionError("a key has at least one value")


def _never(container: Any, item: Any) -> Any:
    """Raise: the placeholder of the accumulation of one key's values, which happens for all keys at once."""
    raise AssertionError("the values are folded for all keys at once")
