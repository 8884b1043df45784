"""`Reading` and `Writing`: what stands for the processors of a vertex that a job reads or writes for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from dstream.errors import UnsupportedError
from dstream.spi.processor_suppliers import Address, ProcessorMetaSupplier, ProcessorSupplier

if TYPE_CHECKING:
    from dstream.core.processors.peeking_processor import Peek

__all__ = ["EndSupplier", "Reading", "Writing"]


@dataclass(frozen=True, slots=True, repr=False)
class EndSupplier(ProcessorMetaSupplier):
    """The plan of a graph takes what it needs from here; nobody asks it for processors.

    Attributes:
        peeks: what is logged of the items that pass, and how.
        preferred_local_parallelism: into how many parts the vertex is divided unless it says so.
        is_only_one: the vertex must not say another number.
    """

    peeks: tuple[Peek, ...] = ()
    preferred_local_parallelism: int = -1
    is_only_one: bool = False

    passes_items = ""
    """Whether the graph sees what it has as "input" or as "output"."""
    call = ""

    def peeked(self, peek: Peek) -> Self:
        """Return the same, which logs what passes.

        Raises:
            UnsupportedError: nothing of that kind does.
        """
        if peek.what != self.passes_items:
            raise UnsupportedError(
                f"peek_{peek.what}: {self!r} has no {peek.what} in a graph; peek_{self.passes_items}() logs its items"
            )
        return replace(self, peeks=(*self.peeks, peek))

    def only_one(self) -> Self:
        """Return the same, undivided."""
        return replace(self, preferred_local_parallelism=1, is_only_one=True)

    def parallelism(self, vertex: str, wanted: int) -> int:
        """Return into how many parts a vertex is divided; -1: nobody said it.

        Raises:
            ValueError: it asks for several, and is to be one.
        """
        if self.is_only_one and wanted not in (-1, 1):
            raise ValueError(
                f"vertex {vertex!r} is to have {wanted} processors, and its supplier allows one in all: leave out "
                "local_parallelism, or say 1"
            )
        return self.preferred_local_parallelism if wanted == -1 else wanted

    def get(self, addresses: Sequence[Address]) -> Callable[[Address], ProcessorSupplier]:
        """Refuse: the job reads and writes."""
        raise UnsupportedError(
            f"processors.{self.call}() stands at the {'beginning' if self.call == 'read' else 'end'} of a graph that a "
            "job runs, and makes no processors of its own: give it to dag.new_vertex(...) as it is"
        )

    def __repr__(self) -> str:
        return f"peek_{self.passes_items}(" * len(self.peeks) + f"{self.call}({self._given()})" + ")" * len(self.peeks)

    def _given(self) -> str:
        """Return how what was given to the call reads."""
        return "..."


@dataclass(frozen=True, slots=True, repr=False)
class Reading(EndSupplier):
    """A vertex that reads a source."""

    source: Any = None

    passes_items = "output"
    call = "read"


@dataclass(frozen=True, slots=True, repr=False)
class Writing(EndSupplier):
    """A vertex that writes into a sink."""

    sink: Any = None

    passes_items = "input"
    call = "write"

    def _given(self) -> str:
        return str(self.sink.label)
