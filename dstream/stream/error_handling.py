"""`Recovering`: the treatment of items that a step fails on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

from dstream.arguments import checked_function, hinting, is_sink, kind_of
from dstream.errors import IllegalStateError
from dstream.plan import Filter, FlatMap, Gather, Map, MapMulti, Node, Read, Recover, called, unchanged
from dstream.plan.operations.calls import WithService
from dstream.spi import Calling, Reducer
from dstream.stream.base import BaseStream
from dstream.stream.runtime import Delivery
from dstream.values import DeadLetter

__all__ = ["Recovering"]


T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class Recovering(BaseStream[T]):
    """A stream whose steps may fail on some items.

    The three methods apply to the step before, which runs a function on each item, or to a source of files right before
    them: an item on which that step fails is a `BadRecord`, with the parser's exception or a `SourceError`. Several may
    follow one another: the first that is for the exception decides. Per item it is all or nothing: the results of
    `flat_map` for an item are read to the end before its first item is emitted, so that one that fails half-way emits
    nothing.

    At the end of the terminal operation a line on stderr reports how many items there were, unless
    `connect(progress=False)` disables it.
    """

    __slots__ = ()

    _resolved_kind: ClassVar[type | None] = None
    """The type of number that `resolve` must return on a stream of numbers, or None."""

    @hinting(args="ignore((ValueError, TypeError)), with a tuple of exceptions")
    def ignore(self, kinds: type[Exception] | tuple[type[Exception], ...]) -> Self:
        """Leave out the items on which the step before fails with one of these exceptions.

        Args:
            kinds: an exception class or a tuple of them, as for `except`.

        Raises:
            IllegalStateError: the step before runs no function on each item.

        Example:
            >>> Stream.of("12", "x", "7").map(int).ignore(ValueError).to_list()
            [12, 7]
        """
        return self._recover(kinds, "ignore", treatment="ignored")

    def resolve(self, kinds: type[E] | tuple[type[E], ...], fn: Callable[[Any, E], T]) -> Self:
        """Replace all output of the step before for a failed item by one item, `fn(item, error)`.

        What `fn` raises is not caught.

        Args:
            kinds: an exception class or a tuple of them, as for `except`.
            fn: takes the input of the step before, and the exception.

        Raises:
            IllegalStateError: the step before runs no function on each item.

        Example:
            >>> Stream.of("12", "x").map(int).resolve(ValueError, lambda text, error: -1).to_list()
            [12, -1]
        """
        return self._recover(
            kinds, "resolve", treatment="resolved", fn=checked_function(fn, "fn"), kind=self._resolved_kind
        )

    @hinting(args="on_error((ValueError, TypeError), into=...), with a tuple of exceptions")
    def on_error(self, kinds: type[Exception] | tuple[type[Exception], ...], *, into: Reducer[DeadLetter, Any]) -> Self:
        """Send the items on which the step before fails with one of these exceptions to a reducer.

        The reducer gets a `DeadLetter` for each: the item, the name and message of the exception, the
        step. The letters travel through the caller's process and are committed at once when the job is over, each once,
        also if a task was repeated; none of them if the job fails. A loop over the stream that is left early commits
        those that occurred until then.

        Args:
            kinds: an exception class or a tuple of them, as for `except`.
            into: the reducer that writes the letters, such as `to_ilist("bad")`.

        Raises:
            IllegalStateError: the step before runs no function on each item.

        Example:
            >>> from reducers import to_ilist
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     numbers = ctx.stream(["12", "x"]).map(int).on_error(ValueError, into=to_ilist("bad")).to_list()
            ...     numbers, [(letter.item, letter.error) for letter in ctx.get_list("bad")]
            ([12], [('x', 'ValueError')])
        """
        return self._recover(kinds, "on_error", treatment="sent", delivery=self._delivery(into, "into"))

    def _recover(self, kinds: Any, name: str, **treatment: Any) -> Self:
        checked = _exceptions(kinds)
        if not _calls_for_each_item(self._node):
            raise IllegalStateError(
                f".{name}() is about the step before it, which must run a function on each item (map, filter, "
                "flat_map, map_multi and their kin, gather(map_concurrent(...))) or read records of files; "
                f"here it is {_written(self._node)}"
            )
        recover = Recover(self._node, checked, **treatment)
        return self._then(replace(recover, step=called(name, *recover.arguments())))

    def _delivery(self, reducer: Any, name: str) -> Delivery:
        if not is_sink(reducer):
            raise TypeError(f"{name} must be a reducer, such as to_ilist(...), not {kind_of(reducer)}")
        return Delivery(reducer, self._runtime)


def _written(node: Node) -> str:
    """Return the call that made a node, or the one before it that the user wrote."""
    return node.label() or next((_written(each) for each in node.inputs()), "none")


def _calls_for_each_item(step: Node) -> bool:
    """Return whether a step runs a function of the user's on each item, or parses it, so that `Recover` may follow."""
    match step:
        case Map(fn=fn):
            return fn is not unchanged  # A check of numbers is such a step, and not a user's call.
        case Read(source=source):
            return hasattr(source, "on_bad")
        case FlatMap():
            return bool(step.label())  # A node that only flattens the output of others is not the user's.
        case Filter() | MapMulti() | Recover() | WithService():
            return True
        case Gather(gatherer=gatherer):
            return isinstance(gatherer.parallel, Calling)
    return False


def _exceptions(kinds: Any) -> tuple[type[Exception], ...]:
    """Return exception classes as a tuple.

    Raises:
        TypeError: there are none, or something else among them.
    """
    found = kinds if isinstance(kinds, tuple) else (kinds,)
    if found and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in found):
        return found
    shown = getattr(kinds, "__name__", None) or kind_of(kinds)
    raise TypeError(f"kinds must be a class of exceptions below Exception, or a tuple of such, not {shown}")
