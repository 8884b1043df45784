"""`limited`: a fork whose readers all want its first items only reads no more than these."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping

from dstream.plan.core import Core, Limit
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.walk import topological

__all__ = ["limited"]

_Wanted = dict[int, list[Limit | None]]
"""The limits by which each fork is read; None: all items are wanted."""


def limited(several: Several) -> Several:
    """Return the plan with a limit before each fork that is read by limits alone: the largest of these."""
    limits = {number: limit for number, found in _wanted(several).items() if (limit := _largest(found)) is not None}
    became: dict[int, Core] = {}
    for each in topological(several) if limits else ():
        became[id(each)] = _limited(each, became, limits)
    result = became.get(id(several), several)
    assert isinstance(result, Several), "a plan with several ends remains one"
    return result


def _wanted(several: Several) -> _Wanted:
    """Say how each fork is read; a fork of a fork that ends early wants no more than it gives."""
    wanted: _Wanted = defaultdict(list)
    for reader in reversed(topological(several)):
        limit = (
            reader if isinstance(reader, Limit) else _largest(wanted[id(reader)]) if isinstance(reader, Fork) else None
        )
        for upstream in reader.inputs():
            if isinstance(upstream, Fork):
                wanted[id(upstream)].append(limit)
    return wanted


def _largest(found: list[Limit | None]) -> Limit | None:
    """Return the limit that is enough for all readers, if all have one."""
    return max(found, key=lambda limit: math.inf if limit is None else limit.count)


def _limited(each: Core, became: Mapping[int, Core], limits: Mapping[int, Limit]) -> Core:
    inputs = [became[id(upstream)] for upstream in each.inputs()]
    limit = limits.get(id(each))
    if limit is not None:
        inputs = [dataclasses.replace(limit, upstream=inputs[0])]
    is_same = all(new is old for new, old in zip(inputs, each.inputs(), strict=True))
    return each if is_same else each.with_inputs(inputs)
