"""Open contexts of this process, and their refusal on workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dstream.errors import IllegalStateError

if TYPE_CHECKING:
    from dstream.session.context import Context

__all__ = ["Contexts", "contexts", "refused_on_a_worker"]


def refused_on_a_worker(what: str) -> IllegalStateError:
    """Return the error of a call that needs the driver; a worker never starts a Java process.

    Args:
        what: what was called there.
    """
    return IllegalStateError(
        f"{what} was called on a Spark worker, by a function that runs there or by a module that it imports: "
        "connect and read in the driver only (in a function, or behind `if __name__ == '__main__':`), and give the "
        "function the plain values that it needs"
    )


class Contexts:
    """The open contexts of this process, and which of them is the default."""

    def __init__(self) -> None:
        self._open: list[Context] = []
        self._chosen: Context | None = None

    def add(self, context: Context) -> None:
        """Add a context that was opened."""
        self._open.append(context)

    def forget(self, context: Context) -> None:
        """Remove a context that was closed; it is no default any more."""
        self._open = [known for known in self._open if known is not context]
        if self._chosen is context:
            self._chosen = None

    def choose(self, context: Context | None) -> None:
        """Make a context the default; None: the one that was opened first."""
        self._chosen = context

    @property
    def chosen(self) -> Context | None:
        """The context that was made the default; None if none was."""
        return self._chosen

    def default(self) -> Context | None:
        """Return the default context: the chosen one, or the one that was opened first; None if none is open."""
        return self._chosen or next(iter(self._open), None)


contexts = Contexts()
"""The contexts of this process."""
