"""Services of maps for functions on workers: `imap_service` and the look-ups of `map_using_imap`.

A handle to a map belongs to a context and is not pickled. Its store is pickled instead, as a read-only view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, overload

from dstream.errors import IllegalStateError
from dstream.keys import canonical
from dstream.plan import Node, SourceLocation, called, shown_function
from dstream.plan.operations.elementwise import UsingBatches
from dstream.spi.runtime import Service
from dstream.spi.sink import Collections
from dstream.spi.store import MapStore

__all__ = ["ImapService", "MapView", "imap_service", "look_ups"]


K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class MapView(Generic[K, V]):
    """A distributed map as functions on workers see it: its newest state, read only.

    Where the map is stored in the memory of the caller's process, workers have a copy, as of the start of the job.
    """

    def __init__(self, store: MapStore) -> None:
        self._store = store

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, default: D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """Return the value of `key`, or `default` if there is none."""
        (value,) = self.get_many([key])
        # Maps contain no None, so None means a missing key.
        return default if value is None else value

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the entries of those `keys` that exist, all from one state of the map."""
        known = list(keys)
        return {key: value for key, value in zip(known, self.get_many(known), strict=True) if value is not None}

    def get_many(self, keys: list[K]) -> list[V | None]:
        """Return the value of each key, None where there is none, all from one state of the map."""
        # Each key once: neighbouring items often have the same.
        keys_to_read = list(dict.fromkeys(canonical(key) for key in keys if key is not None))
        if not keys_to_read:
            return [None] * len(keys)
        found = dict(zip(keys_to_read, self._store.get_many(keys_to_read), strict=True))
        return [None if key is None else found[canonical(key)] for key in keys]

    def __getitem__(self, key: K) -> V:
        (value,) = self.get_many([key])
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: K) -> bool:
        return self.get_many([key])[0] is not None

    def __len__(self) -> int:
        return self._store.size()

    def __repr__(self) -> str:
        return f"MapView({self._store.name!r})"


@dataclass(frozen=True, repr=False)
class _OfMap(Service[MapView[Any, Any]]):
    """A service that opens a view of a map; its `repr` is the user's call."""

    map_name: str = ""

    def __repr__(self) -> str:
        return f"imap_service({self.map_name!r})"


@dataclass(frozen=True, repr=False)
class ImapService(_OfMap):
    """Placeholder of a map service until a job starts in a context (`dstream.spi.runtime.OpenedLater`)."""

    def opened(self, context: Collections) -> Service[MapView[Any, Any]]:
        """Return the service; the map is made if there is none."""
        return _OfMap(partial(MapView[Any, Any], context.get_map(self.map_name).store), map_name=self.map_name)


def imap_service(name: str) -> Service[MapView[Any, Any]]:
    """Return a service for `map_using` and its kin that reads the map `name`: `get`, `get_all`, `[key]`, `in`, `len`.

    The map belongs to the storage of the context in which the job runs. Functions see its newest state, or where it
    is stored in the memory of the caller's process, on workers a copy, as of the start of the job.

    Args:
        name: the name of the map.

    Raises:
        TypeError: `name` is no str.
        ValueError: it is empty.

    Example:
        >>> imap_service("customers")
        imap_service('customers')
    """
    if not isinstance(name, str):
        raise TypeError(f"imap_service: the name of a map must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("imap_service: the name of a map must not be empty")
    return ImapService(partial(_not_opened, name), map_name=name)


def _not_opened(name: str) -> NoReturn:
    raise IllegalStateError(f"imap_service({name!r}) is known by its name: a job opens it for its context")


def look_ups(
    upstream: Node, name: str, key: Callable[[Any], Any], fn: Callable[[Any, Any], Any], where: SourceLocation | None
) -> UsingBatches:
    """Return the node of `map_using_imap`: the results of `fn` for each item and the map's value of its key.

    Values are read for up to some hundred items at a time, for fewer at first. Items keep their order.

    Args:
        upstream: the node of the items.
        name: the name of the map.
        key: returns the key of an item; the map never contains the key None.
        fn: takes (item, value), or (item, None) where the map has no value.
        where: the source location of the user's call.
    """
    arguments = f"{name!r}, {shown_function(key)}, {shown_function(fn)}"
    service = imap_service(name)
    return UsingBatches(
        upstream, service, partial(_looked_up, key, fn), step=called("map_using_imap", arguments, where=where)
    )


def _looked_up(
    key: Callable[[Any], Any], fn: Callable[[Any, Any], Any], view: MapView[Any, Any], items: list[Any]
) -> Iterator[Any]:
    keys = []
    for item in items:  # A failure finds the item by this name.
        keys.append(key(item))  # noqa: PERF401 - inside a comprehension Python 3.12 would forget the name
    for item, value in zip(items, view.get_many(keys), strict=True):
        yield fn(item, value)
