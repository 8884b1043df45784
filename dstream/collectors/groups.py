"""Groups of items by their keys: the containers and functions of the collectors that make groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from dstream.base.records import record
from dstream.collectors.arguments import checked_collector, made_by, shown
from dstream.collectors.arithmetic import count_all
from dstream.collectors.batches import Prepared, batches, kinds, prepared
from dstream.errors import NullElementError
from dstream.failures.attribution import each, failed_on, traced
from dstream.keys import are_canonical, canonical, canonical_all
from dstream.spi import Characteristics, Collector, InColumns, Keyed, identity

__all__ = [
    "AnyKeys",
    "Downstream",
    "Groups",
    "ItemsAsKeys",
    "Keys",
    "collecting_groups",
    "combine_groups",
    "count_batch",
    "filled",
    "finish_groups",
    "groups_of_any_key",
    "with_canonical_keys",
]

Downstream = Collector[Any, Any, Any]
Groups = dict[Any, Any]
"""The downstream container of each key."""


def groups_of_any_key(
    classifier: Callable[[Any], Any] | AnyKeys, downstream: Downstream
) -> Collector[Any, Any, dict[Any, Any]]:
    """Group items as `grouping_by` does, also under None: for aggregates, whose results are not entries of a map.

    Raises:
        UnstableKeyError: a key has no hash, or one that depends on its identity.

    Example:
        >>> from collectors import counting
        >>> groups_of_any_key({"a": 1}.get, counting()).collect("abc")
        {1: 1, None: 2}
    """
    keys = classifier if isinstance(classifier, AnyKeys) else AnyKeys(classifier)
    return collecting_groups(keys, downstream, dict, filled)


@record(slots=False)
class Keys:
    """The keys of items.

    Attributes:
        classifier: returns the key of an item.
    """

    classifier: Callable[[Any], Any]

    def functions(self) -> Sequence[tuple[str, Callable[[Any], Any]]]:
        """Return the user's functions, by their names."""
        return (("key", self.classifier),)

    def one(self, item: Any) -> Any:
        """Return the canonical key of an item."""
        return self.checked(self.classifier(item), item)

    def given(self, batch: list[Any]) -> list[Any]:
        """Return the result of the classifier for each item, unchecked."""
        return each(self.classifier, batch)

    def are_checked(self, given: list[Any]) -> bool:
        """Return whether `checked` leaves all keys as they are; False also where that needs a look at each key."""
        found = kinds(given)
        return type(None) not in found and are_canonical(given, found)

    def checked(self, key: Any, item: Any) -> Any:
        """Return the canonical form of the key that an item has."""
        if key is None:
            raise NullElementError(f"element cannot be mapped to a null key: {shown(item)}")
        return canonical(key)


class AnyKeys(Keys):
    """Keys of items, None among them."""

    def are_checked(self, given: list[Any]) -> bool:
        """Return whether all keys are canonical."""
        return are_canonical(given)

    def checked(self, key: Any, item: Any) -> Any:
        """Return the canonical form of a key, which may be None."""
        return canonical(key)


class ItemsAsKeys(AnyKeys):
    """Items that are their own keys, None among them."""

    def __init__(self) -> None:
        super().__init__(canonical)

    def functions(self) -> Sequence[tuple[str, Callable[[Any], Any]]]:
        """Return an empty tuple: there is no user function."""
        return ()

    def given(self, batch: list[Any]) -> list[Any]:
        """Return the items."""
        return batch


def _all_checked(keys: Keys, given: list[Any], batch: Sequence[Any]) -> list[Any]:
    return given if keys.are_checked(given) else each(keys.checked, batch, given)


def collecting_groups(
    keys: Keys,
    downstream: Downstream,
    map_factory: Callable[[], Any],
    fill: Callable[[Callable[[], Any], Iterable[tuple[Any, Any]]], Any],
    *characteristics: Characteristics,
) -> Collector[Any, Any, Any]:
    """Return a collector of groups.

    Args:
        keys: returns the key of an item.
        downstream: collects the items of one key.
        map_factory: returns the empty mapping of the result.
        fill: receives `map_factory` and pairs of a key and a finished value, and returns the result.
        characteristics: optimisations that the engine may apply.
    """
    downstream = checked_collector(downstream)
    assemble = partial(fill, map_factory)
    # A Counter is a dictionary of the containers of `counting`, and counts a batch at the speed of C.
    counted = downstream.accumulate_all is count_all
    group_all = (
        partial(_count_keys, keys) if counted else partial(_group_all, keys, downstream.supplier, prepared(downstream))
    )
    return Collector(
        Counter if counted else dict,
        partial(_group_one, keys.one, downstream),
        partial(combine_groups, downstream),
        partial(finish_groups, downstream, assemble),
        frozenset(characteristics),
        group_all,
        Keyed(keys.one, downstream, assemble),
        in_columns=_in_columns(keys, downstream, group_all),
        functions=(*keys.functions(), *downstream.functions),
    )


def _in_columns(keys: Keys, downstream: Downstream, same_as: Callable[..., Any]) -> InColumns | None:
    known = downstream.on_columns()
    if known is None or (known.finds == "groups" and not known.makes_containers):
        return None
    if known.supplier is None:
        known = replace(known, supplier=downstream.supplier)
    of = None if isinstance(keys, ItemsAsKeys) else keys.classifier
    return InColumns("groups", of=of, downstream=known, same_as=same_as)


def _group_one(key_of: Callable[[Any], Any], downstream: Downstream, groups: Groups, item: Any) -> None:
    key = key_of(item)
    container = groups[key] if key in groups else downstream.supplier()
    following = downstream.accumulator(container, item)
    groups[key] = container if following is None else following


def _group_all(
    keys: Keys,
    supplier: Callable[[], Any],
    steps: Prepared,
    groups: Groups,
    items: Iterable[Any],
) -> Groups:
    for batch in batches(items):
        given, values = keys.given(batch), steps.prepare(batch)
        if steps.add_known is not None and steps.add_known(groups, given, values):
            continue
        found = _all_checked(keys, given, batch)
        if steps.add_each is not None and steps.add_each(groups, found, values):
            continue
        # Where most keys occur once, bringing the values of a key together costs more than it saves.
        gather = _group_each if 2 * len(set(found)) > len(found) else _group_together
        try:
            gather(supplier, steps, groups, found, values)
        except Exception as error:
            traced(error, values, batch)
            raise
    return groups


def _group_each(
    supplier: Callable[[], Any], steps: Prepared, groups: Groups, keys: list[Any], values: list[Any]
) -> None:
    add = steps.add
    for key, value in zip(keys, values, strict=True):
        container = groups[key] if key in groups else supplier()
        try:
            following = add(container, value)
        except Exception as error:
            failed_on(error, value)
            raise
        groups[key] = container if following is None else following


def _group_together(
    supplier: Callable[[], Any], steps: Prepared, groups: Groups, keys: list[Any], values: list[Any]
) -> None:
    members: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        members[key].append(value)
    for key, together in members.items():
        groups[key] = steps.add_all(groups[key] if key in groups else supplier(), together)


def _count_keys(keys: Keys, groups: Counter[Any], items: Iterable[Any]) -> Counter[Any]:
    for batch in batches(items):
        count_batch(keys, groups, keys.given(batch), batch)
    return groups


def count_batch(keys: Keys, groups: Counter[Any], given: list[Any], batch: Sequence[Any]) -> None:
    """Count first, and check only new keys: a key that equals an earlier one is that key."""
    known = len(groups)
    try:
        groups.update(given)
    except Exception:  # A key has no hash, or a hash that fails: the check raises the documented error.
        _all_checked(keys, given, batch)
        raise
    # New keys are the last ones of a dictionary.
    added = list(islice(reversed(groups), len(groups) - known))
    if keys.are_checked(added):
        return
    # Keys that are not canonical were counted: all counts are subtracted, and counted once more.
    groups.subtract(given)
    for key in added:
        del groups[key]
    groups.update(_all_checked(keys, given, batch))


def combine_groups(downstream: Downstream, left: Groups, right: Groups) -> Groups:
    """Combine the groups of `right` into the groups of `left`, which precede them."""
    if not are_canonical(list(right)):
        left, right = with_canonical_keys(left), with_canonical_keys(right)
    for key, container in right.items():
        left[key] = downstream.combined(left[key], container) if key in left else container
    return left


def with_canonical_keys(groups: Groups) -> Groups:
    """Return the groups by keys that a dict finds again: a NaN that went through pickle is another object."""
    found = type(groups)()
    # `Counter.update` would add up the counts.
    dict.update(found, zip(canonical_all(list(groups)), groups.values(), strict=True))
    return found


def finish_groups(downstream: Downstream, assemble: Callable[[Iterable[tuple[Any, Any]]], Any], groups: Groups) -> Any:
    """Finish the container of each key, and put them together with `assemble`."""
    # Lists and counts are their own results: no call for each key.
    if downstream.finisher is identity:
        return assemble(groups.items())
    return assemble(downstream.finished(groups.items()))


def filled(map_factory: Callable[[], Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Return a mapping of `map_factory` with the pairs."""
    result = made_by(map_factory)
    if type(result) in (dict, Counter):
        dict.update(result, pairs)  # A Counter would count the pairs.
        return result
    for key, value in pairs:
        result[key] = value
    return result
