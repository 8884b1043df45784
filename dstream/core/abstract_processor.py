"""`AbstractProcessor`: a processor that handles one item at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from dstream.core.traversers import Traverser, traverse, traverse_result
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.spi.processor import Inbox, Outbox, Processor, ProcessorContext, Targets

__all__ = ["AbstractProcessor", "FlatMapper", "NoAnswerError"]

T = TypeVar("T")
_SEVERAL = 5
"""The number of ordinals that have a method of their own."""


class AbstractProcessor(Processor):
    """A processor that gets items one by one; a subclass overrides `try_process`, and often `complete`.

    An item that is not done remains at the head of the inbox and is offered again. A method that emits several items
    for one must therefore remember its position, as `flat_mapper` and `emit_from_traverser` do.

    Example:
        >>> from dstream.core import DAG, AbstractProcessor
        >>> class Doubled(AbstractProcessor):
        ...     def try_process(self, ordinal, item):
        ...         return self.try_emit(2 * item)
        >>> DAG().new_vertex("doubled", Doubled)
        Vertex('doubled')
    """

    _context: ProcessorContext | None = None
    _outbox: Outbox | None = None
    _refused: tuple[Any, Any] | None = None  # A traverser, and the item of it that the outbox did not take.
    _refused_entry: tuple[Any, Any] | None = None  # The same for an entry of a snapshot.
    _methods: tuple[Callable[[Any], bool], ...] = ()

    # What a subclass overrides

    def start(self, context: ProcessorContext) -> None:
        """Get ready; called once, where the processor runs."""

    def try_process(self, ordinal: int, item: Any) -> bool:
        """Process an item; overridden, unless one of the methods for an ordinal is.

        Args:
            ordinal: of its edge.
            item: is offered again if it is not done.

        Returns:
            True when it is done with the item; False to get it again.

        Raises:
            UnsupportedError: always, unless overridden.
        """
        raise UnsupportedError(
            f"{type(self).__name__} got an item by edge {ordinal}, and overrides neither try_process() nor "
            f"try_process{ordinal if ordinal < _SEVERAL else ''}()"
        )

    def try_process0(self, item: Any) -> bool:
        """Process an item of edge 0; calls `try_process(0, item)` unless overridden."""
        return self.try_process(0, item)

    def try_process1(self, item: Any) -> bool:
        """Process an item of edge 1; calls `try_process(1, item)` unless overridden."""
        return self.try_process(1, item)

    def try_process2(self, item: Any) -> bool:
        """Process an item of edge 2; calls `try_process(2, item)` unless overridden."""
        return self.try_process(2, item)

    def try_process3(self, item: Any) -> bool:
        """Process an item of edge 3; calls `try_process(3, item)` unless overridden."""
        return self.try_process(3, item)

    def try_process4(self, item: Any) -> bool:
        """Process an item of edge 4; calls `try_process(4, item)` unless overridden."""
        return self.try_process(4, item)

    def restore_entry(self, key: Any, value: Any) -> None:
        """Take an entry of a snapshot back.

        Args:
            key: as it was saved; a `BroadcastKey` is passed as one.
            value: as it was saved.

        Raises:
            UnsupportedError: always, unless overridden: what was saved would be lost.
        """
        raise UnsupportedError(f"{type(self).__name__} saves a snapshot, and has no restore_entry()")

    # What it can use

    @property
    def context(self) -> ProcessorContext:
        """The context of its run."""
        if self._context is None:
            raise self._not_started()
        return self._context

    @property
    def outbox(self) -> Outbox:
        """The outbox of the processor."""
        if self._outbox is None:
            raise self._not_started()
        return self._outbox

    def _not_started(self) -> IllegalStateError:
        name = type(self).__name__
        return IllegalStateError(
            f"{name} was not initialized: whoever runs it calls init(outbox, context) first; a subclass overrides "
            "start(context), or calls super().init(outbox, context)"
        )

    @property
    def logger(self) -> logging.Logger:
        """A logger named after the vertex and the number of the processor."""
        return self.context.logger

    def try_emit(self, item: Any, to: Targets = None) -> bool:
        """Emit an item.

        Args:
            item: not None.
            to: the ordinals of the edges; None: all.

        Returns:
            Whether it was taken; if not, return False, and emit the same item first when called again.
        """
        return self.outbox.offer(item, to)

    def emit_from_traverser(self, traverser: Traverser[Any] | Iterator[Any], to: Targets = None) -> bool:
        """Emit items until there are none at the moment, or one is not taken.

        The refused item is buffered for the next call with the same traverser.

        Args:
            traverser: a traverser, or an iterator; it remembers its position, so pass the same object to the next call.
            to: the ordinals of the edges; None: all.

        Returns:
            True when all were taken.

        Raises:
            TypeError: `traverser` is neither, such as a list, which has no position.
        """
        following = _following(traverser)
        offer = self.outbox.offer
        if self._refused is not None and self._refused[0] is traverser:
            item = self._refused[1]
            self._refused = None
        else:
            item = following()
        while item is not None:
            if not offer(item, to):
                self._refused = traverser, item
                return False
            item = following()
        return True

    def try_emit_to_snapshot(self, key: Any, value: Any) -> bool:
        """Save an entry; allowed inside of `save_to_snapshot` alone.

        Args:
            key: unique among those that this processor saves; a `BroadcastKey` does not move with the keys of items.
            value: of the entry.

        Returns:
            Whether it was taken; if not, return False, and save the same entry first when called again.
        """
        return self.outbox.offer_to_snapshot(key, value)

    def emit_from_traverser_to_snapshot(
        self, traverser: Traverser[tuple[Any, Any]] | Iterator[tuple[Any, Any]]
    ) -> bool:
        """Save entries to the snapshot until none is left or one is refused, which is buffered for the next call.

        Args:
            traverser: of pairs `(key, value)`; it remembers its position, so pass the same object to the next call.

        Returns:
            True when all were taken.

        Raises:
            TypeError: it is neither a traverser nor an iterator.
        """
        following = _following(traverser)
        if self._refused_entry is not None and self._refused_entry[0] is traverser:
            entry = self._refused_entry[1]
            self._refused_entry = None
        else:
            entry = following()
        while entry is not None:
            key, value = entry
            if not self.outbox.offer_to_snapshot(key, value):
                self._refused_entry = traverser, entry
                return False
            entry = following()
        return True

    def flat_mapper(
        self, fn: Callable[[T], Traverser[Any] | Iterable[Any] | None], to: Targets = None
    ) -> FlatMapper[T]:
        """Return a mapper that emits all results of a function for an item, over as many calls as it takes.

        Args:
            fn: returns a traverser, an iterable, or None for no items. The parameter of a lambda has the type that the
                mapper is annotated with:
                `self.words: FlatMapper[str] = self.flat_mapper(lambda line: line.split())`.
            to: the ordinals of the edges; None: all.
        """
        return FlatMapper(self, fn, to)

    # What the engine calls

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Store the arguments, and call `start`."""
        self._outbox = outbox
        self._context = context
        # Looked up once, instead of for each item.
        names = (f"try_process{ordinal}" for ordinal in range(_SEVERAL))
        self._methods = tuple(getattr(self, name) for name in names)
        self.start(context)

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Process items until one is not done; it remains at the head of the inbox."""
        if self._context is None:
            raise self._not_started()
        process = self._methods[ordinal] if ordinal < _SEVERAL else partial(self.try_process, ordinal)
        peek, remove = inbox.peek, inbox.remove
        while (item := peek()) is not None:
            done = process(item)
            if not done:
                if done is None:
                    raise self._no_answer(ordinal)
                return
            remove()

    def _no_answer(self, ordinal: int) -> NoAnswerError:
        own = f"try_process{ordinal}" if ordinal < _SEVERAL else "try_process"
        name = own if getattr(type(self), own) is not getattr(AbstractProcessor, own) else "try_process"
        return NoAnswerError(
            f"{name}() of {type(self).__name__} must return True when it is done with the item, or False to get it "
            "again, not None"
        )

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Pass each entry to `restore_entry`."""
        for key, value in inbox:
            self.restore_entry(key, value)


class NoAnswerError(TypeError):
    """A method of a processor that returned None, where the protocol needs True or False."""


class FlatMapper(Generic[T]):
    """Emitter of all that a function makes of an item; `AbstractProcessor.flat_mapper` makes one."""

    __slots__ = ("_fn", "_processor", "_to", "_traverser")

    def __init__(
        self, processor: AbstractProcessor, fn: Callable[[T], Traverser[Any] | Iterable[Any] | None], to: Targets
    ) -> None:
        self._processor = processor
        self._fn = fn
        self._to = to
        self._traverser: Traverser[Any] | None = None

    def try_process(self, item: T) -> bool:
        """Emit the results of the function for an item.

        Args:
            item: the same one, until this returns True.

        Returns:
            True when all was taken; False to be called again.
        """
        if self._traverser is None:
            self._traverser = traverse_result(self._fn(item))
        if not self._processor.emit_from_traverser(self._traverser, self._to):
            return False
        self._traverser = None
        return True


def _following(traverser: Any) -> Callable[[], Any]:
    """Return a function that returns the next item of a traverser or an iterator, and None at its end."""
    if isinstance(traverser, Traverser):
        return traverser.next
    if isinstance(traverser, Iterator):
        return traverse(traverser).next
    raise TypeError(
        f"emit_from_traverser() takes a traverser or an iterator, which keeps its place, not "
        f"{type(traverser).__name__}: make it once, with traverse(...), and pass the same one until this returns True"
    )
