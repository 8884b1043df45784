"""`TextColumns`: blocks of lines as rows in columns, the base class for CSV and JSON.

A format overrides how a block becomes a batch of Arrow. What it cannot read exactly is read by the format item by item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from dstream.schema.arrow_decoders import ColumnsOfBatch, rows_maker
from dstream.schema.decoders import ItemDecoder
from dstream.schema.record_decoders import typed_form
from dstream.schema.types import scalar_of
from dstream.spi import ArrowRows

__all__ = ["TextColumns", "only_chunk", "values_of_tokens"]


MOST_BYTES = 16 << 20
"""A block with a line that is longer is read item by item."""
_ROWS = 8_192
"""The number of rows that become items at a time."""
_MOST_FAILURES = 6
"""The number of blocks in a row that are not columnar after which one of 63 is tried."""


class TextColumns(ABC):
    """Maker of rows in columns from blocks.

    Args:
        form: the decoder of the items, from strings or JSON; None for dictionaries.
    """

    fewest_lines: int
    """The lines of a block below which Arrow's calls for each column take longer than the rows."""
    fewest_bytes = 0
    """The bytes of a block below which they take longer, too."""

    def __init__(self, form: ItemDecoder | None) -> None:
        self._form = None if form is None else typed_form(form)
        self._failures = self._pause = 0

    def rows(self, text: bytes) -> ArrowRows | None:
        """Return the rows of a block of complete lines; None if it is not columnar, or has few lines."""
        if self._pause:  # After many failures, few blocks are tried in vain.
            self._pause -= 1
            return None
        if len(text) < self.fewest_bytes or text.count(b"\n") < self.fewest_lines:
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


def values_of_tokens(tokens: Any, kind: type | None) -> Iterator[Any]:
    """Yield the values as each class that the kind allows, at most one of which fits; None for each other."""
    if kind is None:
        yield tokens if _match(tokens, _ANY) and not _has_long(tokens) else None
    if kind is str:  # A string is no token.
        yield tokens if tokens.null_count == len(tokens) else None
    if kind in (int, object):
        yield _cast(tokens, "int64", _INT)
    if kind is float:
        yield _without_negative_zero(_cast(tokens, "double", _NUMBER))
    if kind is object:
        yield _cast(tokens, "double", _FLOAT)
    if kind in (bool, object):
        yield _cast(tokens, "bool", "true|false")


def _has_long(tokens: Any) -> bool:
    """Return whether a token may be an int that Python refuses to parse."""
    from pyarrow.compute import call_function

    longest = call_function("max", [call_function("binary_length", [tokens])]).as_py()
    return longest is not None and longest > _MOST_DIGITS


_MOST_DIGITS = 640
"""The least value of `sys.set_int_max_str_digits` that bounds the digits of an int."""
_INT = "-?(0|[1-9][0-9]*)"
_NUMBER = _INT + r"(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_FLOAT = _INT + r"(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)"
_ANY = f"{_NUMBER}|true|false|null"


def _match(tokens: Any, pattern: str) -> bool:
    from pyarrow.compute import MatchSubstringOptions, call_function

    found = call_function("match_substring_regex", [tokens], MatchSubstringOptions(rf"\A({pattern})\z"))
    return call_function("all", [found]).as_py() is not False  # It is null if all tokens are.


def _cast(tokens: Any, type_name: str, pattern: str) -> Any:
    """Return the values of tokens; None if one does not match the pattern, or is no finite number."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    if not _match(tokens, pattern):
        return None
    found = tokens.cast(pa.type_for_alias(type_name))
    is_float = type_name == "double"
    return None if is_float and call_function("all", [call_function("is_finite", [found])]).as_py() is False else found


def _without_negative_zero(floats: Any) -> Any:
    """Return floats; None if one is -0.0, which differs from the int `-0`."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    if floats is None:
        return None
    zero, one = (scalar_of(number, pa.float64()) for number in (0.0, 1.0))
    is_zero = call_function("equal", [floats, zero])
    inverse = call_function("divide", [one, call_function("if_else", [is_zero, floats, one])])
    return None if call_function("any", [call_function("less", [inverse, zero])]).as_py() else floats
