"""`Lifetime`: whether a stream is closed, and what runs when it is."""

from __future__ import annotations

from collections.abc import Callable

from dstream.errors import IllegalStateError
from dstream.plan import inputs_first
from dstream.values.flattened import refuse_awaitable

__all__ = ["Lifetime"]


class Lifetime:
    """The life of one stream; it ends with that of any stream that it was made from."""

    __slots__ = ("_handler", "_is_closed", "_parents")

    def __init__(self, parents: tuple[Lifetime, ...] = (), handler: Callable[[], object] | None = None) -> None:
        self._parents = parents
        self._handler = handler
        self._is_closed = False

    def check_open(self) -> None:
        """Refuse to go on if this stream is closed.

        Raises:
            IllegalStateError: it is.
        """
        if self._is_closed:
            raise IllegalStateError("stream has already been closed; make it again from its source")

    def check_open_from_the_source(self) -> None:
        """Refuse to go on if this stream, or one that it was made from, is closed."""
        for lifetime in self._from_the_source():
            lifetime.check_open()

    def close(self) -> None:
        """Close this stream; run its handlers and those of the streams before it, in order, each once.

        The streams before it stay open: their plans are theirs to run again.
        """
        self._is_closed = True
        failures: list[Exception] = []
        for lifetime in self._from_the_source():
            handler, lifetime._handler = lifetime._handler, None
            if handler is not None:
                try:
                    refuse_awaitable(handler())
                except Exception as error:
                    failures.append(error)
        if failures:
            first, *suppressed = failures
            for other in suppressed:
                first.add_note(f"another on_close handler failed too: {type(other).__name__}: {other}")
            raise first

    def _from_the_source(self) -> list[Lifetime]:
        """Return this lifetime and all before it, the earliest first."""
        return inputs_first(self, lambda lifetime: lifetime._parents)
