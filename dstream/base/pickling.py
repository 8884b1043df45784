"""Pickling of user objects: by reference if possible, by value where only this process has the class."""

from __future__ import annotations

import copyreg
import functools
import gc
import pickle
from types import MappingProxyType
from typing import Any

__all__ = ["dumps", "read_only"]


def _key_of(comparator: Any, *values: Any) -> Any:
    """Return the key function that `cmp_to_key` makes of a comparator, or the key that it gives for a value."""
    key = functools.cmp_to_key(comparator)
    return key(*values) if values else key


# Both are of one class, which cannot be pickled and does not show what it holds: a comparator, and in a key a value.
# They are its referents, in the order of its fields (Python 3.11 to 3.13).
copyreg.pickle(
    type(functools.cmp_to_key(lambda left, right: 0)),
    lambda key: (_key_of, tuple(part for part in gc.get_referents(key) if part is not type(key))),
)


def read_only(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a read-only view of a dictionary that has no other owner: how `to_unmodifiable_map` travels."""
    return MappingProxyType(values)


# Python can neither pickle nor deepcopy one: it shows the dictionary of somebody else. A copy of that goes along.
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))


def dumps(value: Any) -> bytes:
    """Pickle `value`, by value where it holds a class or function that only this process knows."""
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = None
    if data is not None and b"__main__" not in data:
        return data
    from dstream.base.by_value import dumps_by_value  # here: most of what is pickled is data, which every process knows

    return dumps_by_value(value)
