"""`Service`: something that a function needs beside its item, made where the function runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from dstream.spi.functions import refuse_async, refuse_one_that_would_not_run, shown_function
from dstream.spi.sink import Collections

__all__ = ["OpenedLater", "Service"]

S = TypeVar("S")


@dataclass(frozen=True, repr=False)
class Service(Generic[S]):
    """What stages reach beside their items, such as a client of a server: made on the worker, closed at the end.

    Attributes:
        create: makes it; takes no argument.
        destroy: takes it at its end, also after a failure; None: nothing has to be closed.
        shared: one for each worker process and job; otherwise one for each task.

    Raises:
        TypeError: one of these is of another kind, or an async function.

    Example:
        >>> import io
        >>> Service(io.StringIO, io.StringIO.close)
        Service(StringIO, StringIO.close)
    """

    create: Callable[[], S]
    destroy: Callable[[S], object] | None = None
    shared: bool = True

    def __post_init__(self) -> None:
        if not callable(self.create):
            raise TypeError(f"Service: create must be a function, not {type(self.create).__name__}")
        if self.destroy is not None and not callable(self.destroy):
            raise TypeError(f"Service: destroy must be a function, not {type(self.destroy).__name__}")
        refuse_async(self.create, "Service: create")
        if self.destroy is not None:
            refuse_one_that_would_not_run(self.destroy, "Service: destroy")
        if not isinstance(self.shared, bool):
            raise TypeError(f"Service: shared must be True or False, not {type(self.shared).__name__}")

    def __repr__(self) -> str:
        given = [shown_function(each) for each in (self.create, self.destroy) if each is not None]
        return f"Service({', '.join([*given, *([] if self.shared else ['shared=False'])])})"


@runtime_checkable
class OpenedLater(Protocol):
    """A value that stands for a source or a service until there is a context, such as a map that is known by its name.

    It travels and is stored without one. `dstream.plan.opening.opened` puts what it stands for in its place.
    """

    def opened(self, context: Collections) -> Any:
        """Return the source or the service that it stands for.

        Args:
            context: has the collections of the storage.
        """
        ...
