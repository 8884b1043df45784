"""Pickling of user objects: by reference if possible, by value where only this process has the class."""

from __future__ import annotations

import copyreg
import functools
import gc
import io
import pickle
import sys
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from dstream.base.registry import PACKAGES, reduced_to_name

__all__ = ["dumps", "dumps_named", "dumps_named_by_reference", "read_only"]


def _key_of(comparator: Any, *values: Any) -> Any:
    """Return the key function that `cmp_to_key` makes of a comparator, or the key that it returns for a value."""
    key = functools.cmp_to_key(comparator)
    return key(*values) if values else key


# Both are of one class, which cannot be pickled and does not expose its fields: a comparator, and in a key a value.
# They are its referents, in the order of the fields (Python 3.11 to 3.13).
copyreg.pickle(
    type(functools.cmp_to_key(lambda left, right: 0)),
    lambda key: (_key_of, tuple(part for part in gc.get_referents(key) if part is not type(key))),
)


def read_only(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a read-only view of a dictionary that has no other owner: how `to_unmodifiable_map` travels."""
    return MappingProxyType(values)


# Python can neither pickle nor deepcopy one: it is a view of another dictionary. A copy of that is pickled with it.
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))


def dumps(value: Any) -> bytes:
    """Pickle `value`; classes and functions that exist in this process only are pickled by value."""
    try:
        # Items of a class of the program are not pickled twice.
        data = None if _begins_with_own(value) else pickle.dumps(value, protocol=5)
    # A local class is an AttributeError, an object of C without a form a TypeError (Python 3.11).
    except (pickle.PicklingError, AttributeError, TypeError):
        data = None
    if data is not None and not _has_own_names(data):
        return data
    from dstream.base.by_value import dumps_by_value  # imported late: most of what is pickled is data

    return dumps_by_value(value)


def _begins_with_own(value: Any) -> bool:
    first = value[0] if type(value) is list and value else value
    return type(first).__module__ == "__main__"


def _has_own_names(data: bytes) -> bool:
    """Return whether a pickle may contain names of modules that other processes do not import.

    A string of the data may contain one by chance, which costs a slower pickle and no more.
    """
    if b"__main__" in data:
        return True
    # Modules are registered there by `register_pickle_by_value`; without the import there are none.
    registered: Iterable[str] = getattr(sys.modules.get("cloudpickle"), "list_registry_pickle_by_value", tuple)()
    return any(module.encode() in data for module in registered)


def dumps_named(value: Any) -> bytes:
    """Pickle `value` as `dumps`, to be stored: with the names of the registry for our objects."""
    try:
        data = dumps_named_by_reference(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = None
    if data is not None and not _has_own_names(data):
        return data
    from dstream.base.by_value import dumps_by_value

    return dumps_by_value(value, is_named=True)


def dumps_named_by_reference(value: Any) -> bytes:
    """Pickle `value` as `pickle` does, to be stored: with the names of the registry for our objects."""
    data = pickle.dumps(value, protocol=5)
    if not any(
        package in data for package in PACKAGES
    ):  # Most of what is stored; the pickler below calls Python for each object.
        return data
    with io.BytesIO() as target:
        _NamingPickler(target, 5).dump(value)
        return target.getvalue()


class _NamingPickler(pickle.Pickler):
    """Pickler of our objects under the names of the registry."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how a class or function of ours is pickled."""
        return reduced_to_name(obj)
