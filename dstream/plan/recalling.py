"""`recalled`: a plan that reads what an engine keeps of its `cache()` steps.

What is kept belongs to the context that computed it, which knows a step by its identity
(`dstream.engine.kernels.caches`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from dstream.plan.core import Cache, CacheIdentity, Core, End, Recall
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.walk import inputs_first, topological

__all__ = ["Cached", "Found", "nothing_kept", "of_one_run", "recalled"]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Cached:
    """What an engine keeps of a `cache()`.

    Attributes:
        items: in the engine's own terms.
        is_ordered: whether they have an encounter order.
        count: how many there are, if they are in the caller's process; None if they are elsewhere.
        is_there: says whether what holds them still runs.
    """

    items: Any
    is_ordered: bool
    count: int | None = None
    is_there: Callable[[], bool] = _always


E = TypeVar("E", bound=End | Several)

Found = Callable[[Cache], Cached | None]
"""Returns what is kept of a `cache()`, or None."""


def nothing_kept(node: Cache) -> Cached | None:
    """Return None: nothing is kept where no plan has run."""
    return None


def of_one_run(root: E) -> E:
    """Return a plan whose forks belong to one run: what an earlier run kept, such as the last epoch, is not theirs."""
    if not any(isinstance(each, Fork) for each in topological(root)):
        return root
    became: dict[int, Core] = {}
    for each in topological(root):
        own = _reading(each, [became[id(upstream)] for upstream in each.inputs()])
        became[id(each)] = replace(own, identity=CacheIdentity()) if isinstance(own, Fork) else own
    return became[id(root)]  # type: ignore[return-value]  # what ends a plan becomes the same with other inputs


@overload
def recalled(root: E, found: Found) -> E: ...


@overload
def recalled(root: Core, found: Found) -> Core: ...


def recalled(root: Core, found: Found) -> Core:
    """Return a plan that reads what was `found` of its caches, and nothing of what stands before those.

    Each cache is looked for once, so that the whole plan is of one state of what is kept.
    """
    asked = {id(each): found(each) for each in topological(root) if isinstance(each, Cache)}
    recalls = {number: cached for number, cached in asked.items() if cached is not None}
    if not recalls:
        return root
    became: dict[int, Core] = {}
    for each in inputs_first(root, lambda each: () if id(each) in recalls else each.inputs()):
        cached = recalls.get(id(each))
        if cached is None:
            became[id(each)] = _reading(each, [became[id(upstream)] for upstream in each.inputs()])
        else:
            became[id(each)] = Recall(cached.items, cached.is_ordered, step=each.step)
    return became[id(root)]


def _reading(each: Core, inputs: Sequence[Core]) -> Core:
    """Return an operation that reads from `inputs`: itself, if it does."""
    is_same = all(new is old for new, old in zip(inputs, each.inputs(), strict=True))
    return each if is_same else each.with_inputs(inputs)
