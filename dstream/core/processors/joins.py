"""`hash_join`: items with the matches of their key on other edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product, starmap
from typing import Any

from dstream.arguments import kind_of, optional_function
from dstream.core.block_processor import SavingProcessor, without_none
from dstream.core.suppliers import LibrarySupplier, shown_call
from dstream.errors import IllegalStateError
from dstream.failures.attribution import each
from dstream.keys.hashing import keys_of, with_keys_of_this_process
from dstream.pipeline import JoinClause
from dstream.spi.processor import BroadcastKey, Inbox
from dstream.spi.suppliers import ProcessorMetaSupplier

__all__ = ["hash_join"]


_NO_MATCH = (None,)
_ENDED = BroadcastKey("ended")


def hash_join(
    *, joins: Sequence[JoinClause[Any, Any, Any, Any]], to: Callable[..., Any] | None = None, inner: bool = False
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit each item of edge 0 with its matches from the other edges.

    The items of edge `n` are buffered by the keys of the clause `joins[n - 1]`. Such an edge is read first, and each
    processor gets all of it: `.priority(-1).broadcast()`; or it is partitioned by the same key as edge 0. An item that
    matches several is emitted several times, in their order.

    Args:
        joins: a clause for each of the other edges.
        to: takes (item, match, ...), with a match from each edge, and returns the output; None: a tuple of them.
        inner: items that match nothing on some edge are left out; otherwise None is the match.

    Raises:
        TypeError: one of these is of another kind.
        ValueError: there is no clause.

    Example:
        >>> from dstream import JoinClause
        >>> from dstream.core import processors
        >>> processors.hash_join(joins=[JoinClause.join_map_entries(len)])
        hash_join(joins=[JoinClause.join_map_entries(len)])
    """
    if not isinstance(joins, list | tuple) or not all(isinstance(clause, JoinClause) for clause in joins):
        raise TypeError(f"joins must be a list with a JoinClause for each edge behind the first, not {kind_of(joins)}")
    if not joins:
        raise ValueError("joins must not be empty: hash_join needs an edge that has the matches")
    if not isinstance(inner, bool):
        raise TypeError(f"inner must be True or False, not {kind_of(inner)}")
    create = partial(_HashJoining, tuple(joins), optional_function(to, "to"), inner)
    shown = f"hash_join(joins=[{', '.join(map(repr, joins))}]"
    shown += "".join(f", {name}={value}" for name, value in (("inner", inner),) if value)
    shown += ")" if to is None else f", {shown_call('', to=to)[1:]}"
    return LibrarySupplier(create, shown, inputs=1 + len(joins))


class _HashJoining(SavingProcessor):
    def __init__(self, joins: tuple[JoinClause[Any, Any, Any, Any], ...], to: Any, inner: bool) -> None:
        super().__init__()
        self._joins = joins
        self._to = to
        # The product with nothing is empty, which leaves the item out.
        self._no_match: Sequence[Any] = () if inner else _NO_MATCH
        self._tables: list[dict[Any, list[Any]]] = [{} for _ in joins]
        self._ended: set[int] = set()

    def made_of(self, ordinal: int, items: list[Any]) -> Iterator[Any]:
        if ordinal:
            self._hold(ordinal, items)
            return iter(())
        if len(self._ended) < len(self._joins):
            missing = next(n for n in range(1, len(self._joins) + 1) if n not in self._ended)
            raise IllegalStateError(
                f"hash_join got an item of edge 0 before all of edge {missing}: give the edges that have matches an "
                "earlier priority, as Edge.from_(names).to(join, 1).priority(-1).broadcast()"
            )
        return self._joined(items)

    def _hold(self, ordinal: int, items: list[Any]) -> None:
        clause, table = self._joins[ordinal - 1], self._tables[ordinal - 1]
        values = items if clause.projection is None else each(clause.projection, items)
        for key, value in zip(keys_of(clause.right_key, items), values, strict=True):
            table.setdefault(key, []).append(value)

    def _joined(self, items: list[Any]) -> Iterator[Any]:
        to, no_match = self._to, self._no_match
        columns = [
            [table.get(key, no_match) for key in keys_of(clause.left_key, items)]
            for clause, table in zip(self._joins, self._tables, strict=True)
        ]
        for item, *matches in zip(items, *columns, strict=True):  # A failure finds the item by this name.
            found = product((item,), *matches)
            yield from found if to is None else without_none(starmap(to, found))

    def complete_edge(self, ordinal: int) -> bool:
        if ordinal:
            self._ended.add(ordinal)
        return self.emit_what_waits()

    def entries(self) -> Iterator[tuple[Any, Any]]:
        yield _ENDED, sorted(self._ended)
        for number, table in enumerate(self._tables):
            if table:
                yield BroadcastKey(number), {key: list(values) for key, values in table.items()}

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        for key, value in inbox:
            if key == _ENDED:
                self._ended = set(value)
            else:
                self._tables[key.key] = with_keys_of_this_process(value)
