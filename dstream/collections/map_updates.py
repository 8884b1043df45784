"""`ChangingMap`: the updates of a distributed map, and functions that update entries atomically."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from dstream.arguments import running_function
from dstream.base.showing import add_note, shown
from dstream.base.threads import contextmanager
from dstream.collections.base import same
from dstream.collections.map_queries import ReadMap, local
from dstream.errors import NullElementError
from dstream.spi.store import UNCHANGED, Assignment, LiveEntry, change_of
from dstream.values import Entry
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from _typeshed import SupportsKeysAndGetItem

__all__ = ["ChangingMap", "Processing", "noting"]


R = TypeVar("R")


class Processing(Generic[R]):
    """Run of a user's function over a batch of entries, as a `change` of `MapStore.update`.

    Attributes:
        results: the results of the function, by key, in the last run.
    """

    def __init__(
        self,
        place: str,
        keys: list[Any],
        fn: Callable[[LiveEntry[Any, Any]], R],
        predicate: Callable[[Any], object] | None = None,
    ) -> None:
        self.results: dict[Any, R] = {}
        self._place = place
        self._keys = keys
        self._fn = fn
        self._predicate = predicate

    def each(self, values: list[Any]) -> list[Any]:
        """Call the function to change each entry, also one that does not exist."""
        self.results.clear()
        return [self._run(key, value) for key, value in zip(self._keys, values, strict=True)]

    def each_present(self, values: list[Any]) -> list[Any]:
        """Call the function to change each entry that exists and satisfies the predicate."""
        self.results.clear()
        return [
            self._run(key, value) if value is not None and self._is_chosen(key, value) else UNCHANGED
            for key, value in zip(self._keys, values, strict=True)
        ]

    def _is_chosen(self, key: Any, value: Any) -> bool:
        with noting(self._place, key):
            return self._predicate is None or bool(self._predicate(Entry(key, value)))

    def _run(self, key: Any, value: Any) -> Any:
        entry: LiveEntry[Any, Any] = LiveEntry(key, value)
        with noting(f"{self._place}, {shown_function(self._fn)}", key):
            self.results[key] = self._fn(entry)
        return change_of(entry, value)


@contextmanager
def noting(place: str, key: Any) -> Iterator[None]:
    """Add the call and the key to an exception of the user's function."""
    try:
        yield
    except Exception as error:
        add_note(error, f"in {place}, on the key {shown(key)}; this entry was not changed")
        raise


K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_MISSING: Any = object()


class ChangingMap(ReadMap[K, V], MutableMapping[K, V]):
    """The writing half of `IStreamMap`; each call is one commit."""

    def __setitem__(self, key: K, value: V) -> None:
        self.store.update([self._key(key)], Assignment([self._value(key, value)]))

    def __delitem__(self, key: K) -> None:
        if self.remove(key) is None:
            raise KeyError(key)

    def __ior__(self, other: Mapping[K, V] | Iterable[tuple[K, V]]) -> Self:  # type: ignore[misc, override]  # Accepts pairs too, as a dict.
        self.put_all(other)
        return self

    def put(self, key: K, value: V) -> V | None:
        """Set the value of `key` and return the previous value, or None."""
        new = self._value(key, value)
        return self._update(key, lambda old: new)

    def put_if_absent(self, key: K, value: V) -> V | None:
        """Set the value of `key` if it has none; return the existing value, or None.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.put_if_absent("Ada", 36), ages.put_if_absent("Ada", 99), ages["Ada"]
            (None, 36, 36)
        """
        new = self._value(key, value)
        return self._update(key, lambda old: new if old is None else UNCHANGED)

    def setdefault(self, key: K, default: V | None = None, /) -> V:
        """Return the value of `key`, set to `default` before if it has none.

        The returned value is a copy: changing it in place does not change the map.

        Raises:
            NullElementError: `default` is None, which a map cannot contain.
        """
        new: Any = self._value(key, default)
        old = self.put_if_absent(key, new)
        return new if old is None else old

    # Changes by the current value, as in `java.util.Map`

    def compute(self, key: K, fn: Callable[[K, V | None], V | None]) -> V | None:
        """Set the value of `key` to the result of `fn` for the key and its present value, atomically; return it.

        Args:
            key: the key; it need not exist.
            fn: receives the key and its value, None if absent. A result of None removes the entry. It runs again, with
                the fresh value, if another thread or process changed the entry meanwhile, so it should do nothing else.
                An exception passes through and changes nothing.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     counts = ctx.get_map("counts")
            ...     counts.compute("whale", lambda word, n: (n or 0) + 1), counts.compute("sea", lambda word, n: n)
            ...     counts.copy()
            (1, None)
            {'whale': 1}
        """
        return self._decided("compute", key, fn, lambda known, old: fn(known, old))

    def compute_if_absent(self, key: K, fn: Callable[[K], V | None]) -> V | None:
        """Set the value of `key` to the result of `fn` for the key if it has none, atomically; return its value.

        `fn` does not run if there is a value. If it returns None, the entry remains absent. It may run again, as in
        `compute`; its result is discarded if another process was first.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     lengths = ctx.get_map("lengths")
            ...     lengths.compute_if_absent("whale", len), lengths.compute_if_absent("whale", lambda word: 0)
            (5, 5)
        """
        return self._decided("compute_if_absent", key, fn, lambda known, old: fn(known) if old is None else UNCHANGED)

    def compute_if_present(self, key: K, fn: Callable[[K, V], V | None]) -> V | None:
        """Set the value of `key` to the result of `fn` for it if it has one, atomically; return its value, or None.

        `fn` gets the key and the value, does not run without one, and removes the entry with None. It may run again, as
        in `compute`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     stock = ctx.get_map("stock")
            ...     stock["rope"] = 1
            ...     stock.compute_if_present("rope", lambda what, n: n - 1 or None), "rope" in stock
            (None, False)
        """
        return self._decided(
            "compute_if_present", key, fn, lambda known, old: UNCHANGED if old is None else fn(known, old)
        )

    def merge(self, key: K, value: V, fn: Callable[[V, V], V | None]) -> V | None:
        """Set the value of `key` to `value`, or to the result of `fn` for the present one and `value`; return it.

        It is atomic. `fn` does not run without a value, and removes the entry with None. It may run
        again, as in `compute`; it gets a copy of `value` each time, which it may change.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     counts = ctx.get_map("counts")
            ...     [counts.merge("whale", 1, int.__add__) for _ in range(3)]
            [1, 2, 3]
        """
        new = self._value(key, value)
        return self._decided("merge", key, fn, lambda known, old: new if old is None else fn(old, copy.deepcopy(new)))

    def _decided(self, name: str, key: Any, fn: Callable[..., Any], decide: Callable[[Any, Any], Any]) -> V | None:
        """Call a user's function to decide on the value of one key, and return the new value."""
        known, place = self._key(key), f"{self._place(name)}, {shown_function(running_function(fn, 'fn'))}"
        # The store calls `change` again after a conflict: what it decided last was written.
        new: Any = UNCHANGED

        def change(old: Any) -> Any:
            nonlocal new
            with noting(place, known):
                new = decide(known, old)
            return new

        old = self._update(known, change)
        return old if new is UNCHANGED else new

    # Bulk changes

    @overload
    def update(self, other: SupportsKeysAndGetItem[K, V], /) -> None: ...

    @overload
    def update(self, other: Iterable[tuple[K, V]], /) -> None: ...

    @overload
    def update(self: ChangingMap[str, V], other: SupportsKeysAndGetItem[str, V], /, **entries: V) -> None: ...

    @overload
    def update(self: ChangingMap[str, V], other: Iterable[tuple[str, V]], /, **entries: V) -> None: ...

    @overload
    def update(self: ChangingMap[str, V], /, **entries: V) -> None: ...

    def update(self, other: Any = (), /, **entries: Any) -> None:
        """Set the entries of a mapping, of pairs, or of keyword arguments, all in one commit."""
        self._put_all(dict(local(other), **entries))

    def put_all(self, entries: SupportsKeysAndGetItem[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the entries of a mapping, or of pairs, all in one commit."""
        self._put_all(dict(local(entries)))

    def _put_all(self, entries: dict[Any, Any]) -> None:
        new = {self._key(key): self._value(key, value) for key, value in entries.items()}
        if new:
            self.store.update([*new], Assignment([*new.values()]))

    @overload
    def replace(self, key: K, value: V, /) -> V | None: ...

    @overload
    def replace(self, key: K, old: V, new: V, /) -> bool: ...

    def replace(self, key: K, *values: Any) -> Any:
        """Set the value of `key` if it has one, or if it has a certain one.

        `replace(key, value)` returns the previous value; if there was none, it returns None and changes nothing.
        `replace(key, old, new)` returns whether the value was `old`, and only then sets it to `new`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ages = ctx.get_map("ages")
            ...     ages.update(Ada=36)
            ...     ages.replace("Ada", 37), ages.replace("Alan", 41), ages.replace("Ada", 36, 38), ages["Ada"]
            (36, None, False, 37)
        """
        match values:
            case (value,):
                new = self._value(key, value)
                return self._update(key, lambda old: UNCHANGED if old is None else new)
            case (expected, value):
                new = self._value(key, value)
                return self._change_if(key, self._value(key, expected), new)
        raise TypeError(f"replace() takes (key, value) or (key, old, new), not {1 + len(values)} arguments")

    @overload
    def remove(self, key: K, /) -> V | None: ...

    @overload
    def remove(self, key: K, value: V, /) -> bool: ...

    def remove(self, key: K, *values: Any) -> Any:
        """Remove an entry, or only one with a certain value.

        `remove(key)` returns the value, or None if there was none. `remove(key, value)` returns whether
        the entry had that value, and only then removes it.
        """
        match values:
            case () if key is None:
                return None
            case ():
                return self._update(key, lambda old: UNCHANGED if old is None else None)
            case (expected,):
                return self._change_if(key, self._value(key, expected), None)
        raise TypeError(f"remove() takes (key) or (key, value), not {1 + len(values)} arguments")

    @overload
    def pop(self, key: K, /) -> V: ...

    @overload
    def pop(self, key: K, /, default: V) -> V: ...

    @overload
    def pop(self, key: K, /, default: D) -> V | D: ...

    def pop(self, key: K, /, default: Any = _MISSING) -> Any:
        """Remove an entry and return its value, or `default` if there is none.

        Raises:
            KeyError: there is none, and no `default`.
        """
        old = self.remove(key)
        if old is None and default is _MISSING:
            raise KeyError(key)
        return default if old is None else old

    def popitem(self) -> Entry[K, V]:
        """Remove an arbitrary entry and return it.

        Raises:
            KeyError: the map is empty.
        """
        key = None  # None is no key, so that it marks an empty map.
        for key in self:
            value = self.remove(key)
            if value is not None:
                return Entry(key, value)
        if key is None:
            raise KeyError(f"popitem(): {self._kind} {self.name!r} is empty")
        return self.popitem()  # All earlier entries have been removed; later entries remain.

    def clear(self) -> None:
        """Remove all entries, atomically."""
        self.store.clear()

    # How it works

    def _update(self, key: Any, change: Callable[[Any], Any]) -> V | None:
        """Change the value of one key and return the old one."""
        old: V | None
        (old,) = self.store.update([self._key(key)], lambda old: [change(old[0])])
        return old

    def _change_if(self, key: Any, expected: Any, new: Any) -> bool:
        """Change the value of one key if it is the expected one, and return whether it was."""
        was_expected = False

        def change(old: Any) -> Any:
            nonlocal was_expected
            was_expected = old is not None and same(old, expected)
            return new if was_expected else UNCHANGED

        self._update(key, change)
        return was_expected

    def _value(self, key: Any, value: Any) -> Any:
        if value is None:
            raise NullElementError(
                f"{self._kind} {self.name!r} cannot have None as a value, here of the key {shown(key)}; "
                "remove(key) removes an entry"
            )
        return value
