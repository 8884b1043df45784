"""`Vertex`: processors that are alike, under a name that is unique in its `DAG`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

from dstream.plan import call_site
from dstream.plan.where import Where
from dstream.spi.names_of_jet import NamesOfJet
from dstream.spi.processor_suppliers import AnySupplier, ProcessorMetaSupplier, meta_supplier
from dstream.stream.stream_arguments import function, kind_of, whole

__all__ = ["Vertex"]


class Vertex(NamesOfJet):
    """A name, what makes the processors, and how many of them there are.

    `dag.new_vertex(...)` makes one and adds it.

    Args:
        name: unique in its graph.
        supplier: a function that makes a processor, such as a class of processors, or what `dstream.core.processors`
            has; or a `ProcessorSupplier`; or a `ProcessorMetaSupplier`.

    Attributes:
        where: the place of the call that made it.

    Raises:
        TypeError: the name is no str, or the supplier is none.
        ValueError: the name is empty.

    Example:
        >>> from dstream.core import Vertex, processors
        >>> Vertex("upper", processors.map(str.upper)).local_parallelism(2)
        Vertex('upper', local_parallelism=2)
    """

    __slots__ = ("_is_endless", "_name", "_parallelism", "_supplier", "where")

    def __init__(self, name: str, supplier: AnySupplier) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a vertex must be a str, not {kind_of(name)}")
        if not name:
            raise ValueError("the name of a vertex must not be empty")
        self._name = name
        self._supplier = meta_supplier(supplier)
        self._parallelism = -1
        self._is_endless = False
        self.where: Where | None = call_site()

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def supplier(self) -> ProcessorMetaSupplier:
        """What makes the processors."""
        return self._supplier

    @property
    def parallelism(self) -> int:
        """How many processors it has; -1 unless it was said: then its supplier, or the engine, decides."""
        return self._parallelism

    def local_parallelism(self, processors: int) -> Self:
        """Say how many processors it has: all of them, since there is one member.

        Args:
            processors: at least 1; -1 leaves it to the supplier and the engine.

        Raises:
            ValueError: it is neither.
        """
        number = whole(processors, "local_parallelism")
        if number != -1 and number < 1:
            raise ValueError(f"local_parallelism of vertex {self._name!r} must be at least 1, or -1: {number}")
        self._parallelism = number
        return self

    def endless(self) -> Self:
        """Say that its processors, to which nothing leads, may go on for ever: the job runs epoch by epoch then.

        In each epoch they get a slice of time, and at its end they save how far they have come. A graph that reads a
        source without an end runs so anyway.
        """
        self._is_endless = True
        return self

    @property
    def is_endless(self) -> bool:
        """Whether that was said."""
        return self._is_endless

    def update_supplier(self, change: Callable[[ProcessorMetaSupplier], AnySupplier]) -> None:
        """Put what a function makes of the supplier in its place, such as one that looks at what passes.

        Args:
            change: takes the meta-supplier that the vertex has.
        """
        self._supplier = meta_supplier(function(change, "change")(self._supplier))

    def said(self) -> list[str]:
        """Return what was said of it besides its name and supplier, for pictures."""
        parallelism = [] if self._parallelism == -1 else [f"local_parallelism={self._parallelism}"]
        return [*parallelism, *(["endless"] if self._is_endless else [])]

    def __repr__(self) -> str:
        return f"Vertex({', '.join([repr(self._name), *self.said()])})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = copy.copy(self)
        made._supplier = copy.copy(self._supplier)  # Not deeper: what it holds may be a lock or a connection.
        return made
