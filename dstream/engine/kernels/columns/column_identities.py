"""Objects that stand in an item twice: columns would make two of one, which Python code behind them can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.engine.kernels.columns.column_entries import Entries
from dstream.engine.kernels.columns.column_texts import Lists
from dstream.engine.kernels.columns.column_values import Column, Floats, Objects, Tuples, Withheld
from dstream.engine.kernels.columns.unmade import Unmade

__all__ = ["check_identities"]


def check_identities(members: Iterable[Column]) -> None:
    """Look whether an object may stand twice in tuples with these members, where that can be told from two equal ones.

    What is added to a list is in it wherever it stands; so it is with objects of a class. A NaN equals no other one,
    and yet `in`, `count` and the comparison of tuples find the very same.

    Raises:
        Withheld: there may be such an object.
    """
    parts = list(_parts(members))
    lists = [id(each) for each in parts if isinstance(each, Lists)]
    objects = sum(isinstance(each, Unmade) for each in parts)
    if len(set(lists)) < len(lists) or objects > 1:
        raise Withheld("a list or an object that may stand in a tuple twice")
    numbers = [each for each in parts if isinstance(each, Floats | Objects)]
    if len(numbers) + objects < 2:
        return
    seen: Any = objects > 0
    for each in numbers:
        are_nan = _are_nan(each)
        if np.any(are_nan & seen):
            raise Withheld("a NaN that may stand in a tuple twice")
        seen = are_nan | seen


def _parts(members: Iterable[Column]) -> Iterator[Column]:
    for each in members:
        if isinstance(each, Tuples | Entries):
            yield from _parts(each.members)
        else:
            yield each


def _are_nan(column: Floats | Objects) -> NDArray[np.bool_]:
    if isinstance(column, Floats):
        return np.isnan(column.values)
    return np.fromiter((type(each) is float and each != each for each in column.values), np.bool_)
