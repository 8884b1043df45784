"""The sinks of maps, caches and lists, which all reducers of this package are, and `replacing`, which changes one."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from dstream.spi import Collections, Collector, Grouped, MapWriter, Reducer, WriteJob, Writer
from dstream.spi.store import Merge
from dstream.spi.wrong_arguments import checked_function, kind_of

__all__ = [
    "CacheSink",
    "CollectionSink",
    "ListSink",
    "MapSink",
    "Opened",
    "Replaceable",
    "checked_function",
    "checked_text",
    "kind_of",
    "replacing",
]

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Opened(Generic[R]):
    """A collection that is written into.

    Attributes:
        collection: what `collect` hands back.
        begin: begins an epoch of a job in the store of the collection.
    """

    collection: R
    begin: Callable[..., WriteJob[Writer | MapWriter]]

    def result(self) -> R:
        """Return the collection."""
        return self.collection

    def tidy(self, older_than: float) -> None:
        """Let the store cut its log, if it keeps one: what a job commits epoch by epoch must not pile up."""
        cut = getattr(cast(Any, self.collection).store, "cut_log", None)
        if cut is not None:
            cut(older_than)


class Replaceable:
    """A sink whose fields `replace` and `label` `replacing` sets."""

    __slots__ = ()

    replace: bool

    @property
    def instead_of_epochs(self) -> str | None:
        """What to use where items come epoch by epoch, if this sink cannot be written so; None: it can."""
        return _NOT_REPLACING if self.replace else None


_NOT_REPLACING = "leave out replacing(...), so that each epoch adds to what is there"
_NOT_GROUPING = (
    "aggregate by key in the pipeline (`rolling_aggregate`, or `window` and `aggregate`), and use to_imap(...)"
)
_NOT_OVERWRITING = 'give on_existing="merge", so that values are merged with those of earlier epochs'


@dataclass(frozen=True, slots=True, repr=False)
class CollectionSink(Replaceable, ABC, Generic[T, R]):
    """What the sinks of collections have in common.

    Attributes:
        name: that of the collection.
        label: the reducer as the user wrote it.
        replace: the collection's old content disappears in the same commit.
        job: what names the job, so that it writes once however often it runs.
        storage: where the collection is; None: in that of the context.
    """

    name: str
    label: str
    replace: bool = dataclasses.field(default=False, kw_only=True)
    job: str | None = dataclasses.field(default=None, kw_only=True)
    storage: str | None = dataclasses.field(default=None, kw_only=True)

    def place(self, context: Collections) -> Collections:
        """Return where the collection is."""
        return context if self.storage is None else context.elsewhere(self.storage)

    @abstractmethod
    def open(self, context: Collections) -> Opened[R]:
        """Return the collection, made if there is none and it can be made."""

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True, repr=False)
class ListSink(CollectionSink[T, R]):
    """Appends items to a list."""

    @property
    def collector(self) -> None:
        """None: the items are written as they are."""
        return

    def open(self, context: Collections) -> Opened[R]:
        """Return the list."""
        found = self.place(context).get_list(self.name)
        return Opened(found, partial(found.store.begin, replace=self.replace))


@dataclass(frozen=True, slots=True, repr=False)
class MapSink(CollectionSink[T, R]):
    """Writes entries into a map.

    Attributes:
        collector: makes entries of the items.
        merge: makes one value of the value that is there and the new one; unset, the new one replaces it.
        merges_items: the collector makes one value of several items.
    """

    collector: Collector[Any, Any, Any] | Grouped
    merge: Merge | None = None
    merges_items: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def instead_of_epochs(self) -> str | None:
        """Also what to use instead of values that would be those of one epoch."""
        if self.replace:
            return _NOT_REPLACING
        if isinstance(self.collector, Grouped):
            return _NOT_GROUPING
        return _NOT_OVERWRITING if self.merges_items and self.merge is None else None

    def open(self, context: Collections) -> Opened[R]:
        """Return the map."""
        return self._opened(self.place(context).get_map(self.name))

    def _opened(self, found: Any) -> Opened[R]:
        return Opened(found, partial(found.store.begin, merge=self.merge, replace=self.replace))


@dataclass(frozen=True, slots=True, repr=False)
class CacheSink(MapSink[T, R]):
    """Writes entries into a cache."""

    def open(self, context: Collections) -> Opened[R]:
        """Return the cache, which was configured before."""
        return self._opened(self.place(context).get_cache(self.name))


def replacing(reducer: Reducer[T, R]) -> Reducer[T, R]:
    """Let what a reducer writes take the place of everything that the collection, or the folder, held.

    The old content disappears in the commit that the new one appears in: nobody sees an empty collection. In a folder
    the new files appear one by one, then the list in `_SUCCESS` changes, then the old files disappear.

    **Parallelism**, **Guarantee**: those of `reducer`.
    **On re-run**: the result is the same, however often it runs.

    Raises:
        TypeError: `reducer` is none of this package.

    Example:
        >>> from reducers import replacing, to_ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     first = ctx.stream("ab").collect(to_ilist("letters"))
        ...     list(ctx.stream("xyz").collect(replacing(to_ilist("letters"))))
        ['x', 'y', 'z']
    """
    if not isinstance(reducer, Replaceable):
        raise TypeError(f"replacing() takes a reducer of this package, such as to_imap(...), not {kind_of(reducer)}")
    replaced = dataclasses.replace(cast(Any, reducer), replace=True, label=f"replacing({reducer.label})")
    return cast("Reducer[T, R]", replaced)


def checked_text(value: Any, name: str) -> str:
    """Return `value` if it is a text that is not empty.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind_of(value)}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value
