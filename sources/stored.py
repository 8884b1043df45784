"""Collections of the storage that are known by their names: `imap`, `icache`, `ilist`.

They are values without a context, so that a pipeline can be built, pickled and run anywhere. The context that reads
them opens them: it puts the source that the collection itself offers in their place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from dstream.errors import IllegalStateError, SourceError
from dstream.spi.functions import shown_function
from dstream.spi.sink import Collections
from dstream.spi.source import Source, Split
from dstream.spi.wrong_arguments import checked_function
from dstream.values import Entry
from dstream.values.places import Place, checked_place, shown_place
from sources.memory import NamesOfStreams

if TYPE_CHECKING:
    from dstream.spi.store import Kind

__all__ = ["Stored", "icache", "ilist", "imap"]

T = TypeVar("T")
R = TypeVar("R")

AnyEntry = Entry[Any, Any]


@overload
def imap(
    name: str, predicate: Callable[[AnyEntry], object] | None = None, *, storage: Place | None = None
) -> Source[AnyEntry]: ...
@overload
def imap(
    name: str,
    predicate: Callable[[AnyEntry], object] | None,
    projection: Callable[[AnyEntry], R | None],
    *,
    storage: Place | None = None,
) -> Source[R]: ...
@overload
def imap(name: str, *, projection: Callable[[AnyEntry], R | None], storage: Place | None = None) -> Source[R]: ...
def imap(name: str, predicate: Any = None, projection: Any = None, *, storage: Place | None = None) -> Source[Any]:
    """Read the entries of the map `name`, as its `stream()` does.

    The map has to be there when the stream or the job is made: a wrong name is an error, and makes no map.

    **Parallelism**: the storage divides its entries; each task reads its split from the storage itself.
    **Guarantee**: every entry once, without an order, as it stood when the run started.
    **On re-run**: what is in the map then is read.

    Args:
        name: the name of the map.
        predicate: which entries; it runs where the data is read, and the others go no further.
        projection: what to make of each, there too; an entry of which it makes None is dropped.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Raises:
        TypeError: an argument is of another kind.
        SourceError: when it is read or its job is made: the storage has no such map.

    Example:
        >>> from sources import imap
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_map("ages").update(Ada=36, Grace=85)
        ...     ctx.read(imap("ages", lambda entry: entry.value > 40)).to_list()
        [Entry(key='Grace', value=85)]
    """
    return _stored("map", name, predicate, projection, storage)


@overload
def icache(
    name: str, predicate: Callable[[AnyEntry], object] | None = None, *, storage: Place | None = None
) -> Source[AnyEntry]: ...
@overload
def icache(
    name: str,
    predicate: Callable[[AnyEntry], object] | None,
    projection: Callable[[AnyEntry], R | None],
    *,
    storage: Place | None = None,
) -> Source[R]: ...
@overload
def icache(name: str, *, projection: Callable[[AnyEntry], R | None], storage: Place | None = None) -> Source[R]: ...
def icache(name: str, predicate: Any = None, projection: Any = None, *, storage: Place | None = None) -> Source[Any]:
    """Read the entries of the cache `name` that have not expired; reading them is no use of them.

    **Parallelism**, **Guarantee**, **On re-run**: those of `imap`.

    Args:
        name: the name of the cache, which has to be there.
        predicate: as for `imap`.
        projection: as for `imap`.
        storage: as for `imap`.

    Raises:
        TypeError: an argument is of another kind.
        SourceError: when it is read or its job is made: the storage has no such cache.

    Example:
        >>> from sources import icache
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_cache("sessions", ttl=1800)["Ada"] = "token"
        ...     ctx.read(icache("sessions", projection=lambda entry: entry.value)).to_list()
        ['token']
    """
    return _stored("cache", name, predicate, projection, storage)


def ilist(name: str, *, storage: Place | None = None) -> Source[Any]:
    """Read the items of the list `name`, in their order.

    **Parallelism**, **On re-run**: those of `imap`.
    **Guarantee**: every item once, as it stood when the run started.

    Args:
        name: the name of the list, which has to be there.
        storage: as for `imap`.

    Raises:
        TypeError: `name` is no str.
        SourceError: when it is read or its job is made: the storage has no such list.

    Example:
        >>> from sources import ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     ctx.get_list("names").extend(["Ada", "Grace"])
        ...     ctx.read(ilist("names")).map(len).to_list()
        [3, 5]
    """
    return _stored("list", name, storage=storage)


def _stored(
    kind: Kind, name: str, predicate: Any = None, projection: Any = None, storage: Place | None = None
) -> Stored[Any]:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"the name of a {kind} must not be empty")
    for argument, fn in (("predicate", predicate), ("projection", projection)):
        if fn is not None:
            checked_function(fn, argument)
    return Stored(kind, name, predicate, projection, checked_place(storage))


@dataclass(frozen=True, slots=True, repr=False)
class Stored(NamesOfStreams, Generic[T]):
    """What `imap`, `icache` and `ilist` return: a source once a context has opened it.

    Attributes:
        kind: of the collection.
        name: that it is found by.
        predicate: which entries; None for all.
        projection: what becomes of each; None leaves it as it is.
        storage: where it is; None: in that of the context.
    """

    kind: Kind
    name: str
    predicate: Callable[[Any], object] | None = None
    projection: Callable[[Any], Any] | None = None
    storage: str | None = None

    bounded = True
    in_caller = False

    @property
    def ordered(self) -> bool:
        """Whether the items have an encounter order: those of a list do."""
        return self.kind == "list"

    def opened(self, context: Collections) -> Source[T]:
        """Return the source that the collection offers.

        Raises:
            SourceError: there is no such collection.
        """
        place = context if self.storage is None else context.elsewhere(self.storage)
        found = place.existing(self.kind, self.name)
        if found is None:
            made_by = _MAKERS[self.kind].format(self.name)
            raise SourceError(f"{self!r}: there is no {self.kind} {self.name!r} in this storage; {made_by} makes one")
        source = found.source
        if self.predicate is not None or self.projection is not None:
            source = dataclasses.replace(source, predicate=self.predicate, projection=self.projection)
        return cast("Source[T]", source)

    def splits(self, parallelism: int) -> Iterable[Split[T]]:
        """Refuse to be read without a context.

        Raises:
            IllegalStateError: always.
        """
        raise IllegalStateError(f"{self!r} is a name until a context opens it: read it with ctx.read(...)")

    def __repr__(self) -> str:
        functions = (("predicate", self.predicate), ("projection", self.projection))
        shown = [f"{name}={shown_function(fn)}" for name, fn in functions if fn is not None]
        return f"i{self.kind}({', '.join([repr(self.name), *shown])}{shown_place(self.storage)})"


_MAKERS = {"map": "get_map({!r})", "list": "get_list({!r})", "cache": "get_cache({!r}, ttl=...)"}
