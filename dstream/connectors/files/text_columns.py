"""`TextColumns`: blocks of lines as rows in columns, the base of those of CSV and of JSON.

A format overrides how a block becomes a batch of Arrow. What it cannot read exactly is read by the format item by item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dstream.schema.arrow_decoders import ColumnsOfBatch, rows_maker
from dstream.schema.decoders import ItemDecoder
from dstream.schema.record_decoders import typed_form
from dstream.spi import ArrowRows

__all__ = ["TextColumns", "only_chunk"]


MOST_BYTES = 16 << 20
"""A block with a line that is longer is read item by item."""
_ROWS = 8_192
"""The number of rows that become items at a time."""
_MOST_FAILURES = 6
"""After so many blocks in a row that are not columnar, one of 63 is looked at."""


class TextColumns(ABC):
    """Makes rows in columns of blocks.

    Args:
        form: of the items, from texts or JSON; None for dictionaries.
    """

    fewest_lines: int
    """Of a block with fewer lines Arrow's calls for each column take longer than the rows."""
    fewest_bytes = 0
    """Of a shorter block these take longer, too."""

    def __init__(self, form: ItemDecoder | None) -> None:
        self._form = None if form is None else typed_form(form)
        self._failures = self._pause = 0

    def rows(self, text: bytes) -> ArrowRows | None:
        """Return the rows of a block, which are whole lines; None if it is not columnar, or has few lines."""
        if len(text) < self.fewest_bytes or text.count(b"\n") < self.fewest_lines:
            return None
        if self._pause:  # Where many blocks are not, few are looked at in vain.
            self._pause -= 1
            return None
        batch = self._batch(text) if 0 < len(text) <= MOST_BYTES else None
        found = None if batch is None else self._rows(batch)
        self._failures = 0 if found is not None else min(self._failures + 1, _MOST_FAILURES)
        self._pause = 2**self._failures - 2 if self._failures else 0
        return found

    def _rows(self, batch: Any) -> ArrowRows | None:
        columns = ColumnsOfBatch(batch)
        make = rows_maker(self._form, batch.schema.names, columns)
        return None if make is None else make(columns.column, batch.num_rows, _ROWS)

    @abstractmethod
    def _batch(self, text: bytes) -> Any:
        """Return the columns of the parts of items, each with the type of its values; None if it is not columnar."""


def only_chunk(column: Any) -> Any:
    """Return the array of a column that is in chunks."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
