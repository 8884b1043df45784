"""`Tabular`: a stream that is kept, and a stream as a table of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from dstream.plan import Cache, Columns, call_site, explained
from dstream.stream.base import BaseStream

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Tabular"]

T = TypeVar("T")


class Tabular(BaseStream[T]):
    """A stream whose items may be kept, or become columns."""

    __slots__ = ()

    def cache(self) -> Self:
        """Compute the items once, when the first terminal operation needs them, and keep them for later ones.

        They stay where they were computed, in memory and beyond the memory bound on disk, until no stream
        that reads them is left, or their context is closed. The functions before this step run once for each
        item, even if a later operation needs the first item only.

        Example:
            >>> squares = Stream.of(1, 2, 3).peek(print).map(lambda n: n * n).cache()
            >>> squares.count(), squares.to_list()
            1
            2
            3
            (3, [1, 4, 9])
        """
        return self._then(Cache(self._node, where=call_site()))

    def to_arrow(self) -> pa.Table:
        """Return the items as a `pyarrow.Table`, in encounter order; it must fit into the caller's memory.

        The fields of dataclasses and named tuples, the keys of dicts and the places of tuples (`_1`, `_2`, ...)
        are columns; other items are the one column `value`. Types come from the values, and from the
        annotations of fields; a column may hold None anywhere. A stream of nothing has no columns.

        Raises:
            TypeError: the items have no common columns, or Arrow has no type for a value.

        Example:
            >>> Stream.of(Entry("whale", 3), Entry("sea", 12)).to_arrow().to_pydict()
            {'key': ['whale', 'sea'], 'value': [3, 12]}
        """
        node = Columns(self._node, "to_arrow", where=call_site())
        with explained(node, "to_arrow"):
            table: pa.Table = self._result(node, needs_end=True)
            return table

    def to_pandas(self) -> pd.DataFrame:
        """Return the items as a `pandas.DataFrame`; columns as for `to_arrow`, which pandas then converts."""
        node = Columns(self._node, "to_pandas", where=call_site())
        with explained(node, "to_pandas"):
            frame: pd.DataFrame = self._result(node, needs_end=True).to_pandas()
            return frame

    def to_df(self) -> Any:
        """Return the items as a Spark DataFrame; columns as for `to_arrow`.

        The stream runs now, once, and its items stay on the workers; the DataFrame reads them there. It
        promises no order.

        Raises:
            UnsupportedError: the engine has no DataFrames.
            TypeError: the items have no common columns, or Arrow has no type for a value.
        """
        node = Columns(self._node, "to_df", is_frame=True, where=call_site())
        with explained(node, "to_df"):
            return self._result(node, needs_end=True)
