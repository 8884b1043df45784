"""The packages of the short names as members of `dstream`, from the user's side; two type checkers read this file."""

from __future__ import annotations

from typing import assert_type

import dstream as ds
from dstream import Context, IStreamList


def packages(ctx: Context) -> None:
    """Their functions have the types that they have under the short names."""
    assert_type(ds.collectors.counting().collect([1]), int)
    numbers = ctx.read(ds.sources.items(1, 2))
    assert_type(numbers.to_list(), list[int])
    found: IStreamList[int] = numbers.collect(ds.reducers.to_ilist("numbers"))
    assert_type(found, IStreamList[int])
