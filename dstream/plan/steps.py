"""`Step`: how a node names itself when it fails, on any worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dstream.failures import blame
from dstream.plan.where import Where
from dstream.spi.functions import shown_function

__all__ = ["Step", "shown_function"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the user's chain.

    Attributes:
        label: the call as the user wrote it, such as `.map(parse)`.
        where: the place of that call.
        position: its number in the chain, from 1.
        total: how many steps the chain has.
    """

    label: str
    where: Where | None
    position: int
    total: int

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        return f"step {self.position} of {self.total}: {self.label}{place}"

    def guard(self, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return `fn` so that its exceptions name this step and the item."""
        return _Guarded(self, fn)


@dataclass(frozen=True, slots=True)
class _Guarded:
    step: Step
    fn: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        try:
            return self.fn(item)
        except StopIteration as error:
            # What iterates would take it for the end of the items.
            failed = RuntimeError(f"{shown_function(self.fn)} raised StopIteration")
            blame(failed, self.step, item)
            raise failed from error
        except Exception as error:
            blame(error, self.step, item)
            raise
