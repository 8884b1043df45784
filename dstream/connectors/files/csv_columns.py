"""Blocks of CSV as columns, if Arrow reads the same values as `csv.reader` and the decoders of strings.

Arrow divides a block into strings. Each column of numbers is parsed from these, if it has only characters that both
parse in the same way. For any other block the result is None, and it is read row by row.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from dstream.connectors.files.text_columns import TextColumns, only_chunk
from dstream.schema.arrow_decoders import are_parts_plain, names_read
from dstream.schema.decoders import Decoder, ItemDecoder, OptionalDecoder, RecordDecoder, UnionDecoder
from dstream.schema.record_decoders import Parsed, typed_form
from dstream.schema.types import array_of, scalar_of

__all__ = ["CsvColumns", "can_be_columns", "count_lines"]


_MOST_COLUMNS = 1 << 12


def can_be_columns(dialect: Mapping[str, Any], form: ItemDecoder | None) -> bool:
    """Return whether blocks of this dialect may become columns of the parts of these items."""
    signs = [sign for sign in (dialect["delimiter"], dialect["quotechar"]) if sign is not None]
    if not all(sign == "\t" or (sign.isascii() and sign.isprintable()) for sign in signs):
        return False
    return form is None or (are_parts_plain(form) and _typed(form) is not None)


def _typed(form: ItemDecoder) -> RecordDecoder | None:
    found = typed_form(form)
    if found is None or not all(_kind(each) in _READ for _, _, each, _ in form.fields):  # type: ignore[union-attr]
        return None
    return found


def _kind(form: Decoder) -> type | None:
    """Return the class that a string is parsed as; str if strings are unchanged; None if there are several."""
    if isinstance(form, OptionalDecoder):
        return _kind(form.form)
    if isinstance(form, UnionDecoder):
        return None if form.present is None else _kind(form.present)
    return form.kind if isinstance(form, Parsed) else None


def count_lines(text: bytes) -> int:
    r"""Return the number of lines of a block, of which none ends with "\r" alone."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


class CsvColumns(TextColumns):
    """Maker of columns from blocks of CSV.

    Args:
        dialect: the arguments of `csv.reader`.
        names: the names of the columns.
        form: the decoder of the items; None for dictionaries of strings.
    """

    fewest_lines = 300
    fewest_bytes = 32 << 10

    def __init__(self, dialect: Mapping[str, Any], names: tuple[str, ...], form: ItemDecoder | None) -> None:
        super().__init__(form)
        self._dialect = dialect
        self._names = names
        self._quote = (dialect["quotechar"] or "").encode()
        self._signs = dialect["delimiter"].encode() + b"\r\n" + self._quote
        self._kinds: dict[str, type] = dict.fromkeys(names, str)
        if form is not None:
            kinds = {name: _kind(each) for name, _, each, _ in form.fields}  # type: ignore[union-attr]
            self._kinds = {name: kinds[name] or str for name in names_read(self._form, names)}

    def _is_plain(self, text: bytes) -> bool:
        if len(self._names) > _MOST_COLUMNS or not self._kinds:
            return False
        # Arrow drops a byte order mark at the start of a block; `csv` refuses no NUL, and the lines are refused.
        if text.startswith(b"\xef\xbb\xbf") or b"\0" in text:
            return False
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return False
        return not self._quote or self._quote not in text or _are_quotes_plain(text, self._quote, self._signs)

    def _batch(self, text: bytes) -> Any:
        import pyarrow as pa

        try:
            return self._typed_batch(self._texts(text)) if self._is_plain(text) else None
        except pa.ArrowException:  # A row has another number of fields, or a string is not of its type.
            return None

    def _typed_batch(self, texts: Any) -> Any:
        """Return the columns that are read, each of its type; None if one of them has another string."""
        import pyarrow as pa

        arrays = []
        for name, kind in self._kinds.items():
            array = _READ[kind](only_chunk(texts.column(name)))
            if array is None:
                return None
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, list(self._kinds))

    def _texts(self, text: bytes) -> Any:
        """Return the strings of each column; a null for an empty field, and an empty string for `""`."""
        import pyarrow as pa
        from pyarrow import csv

        # An empty field at the very end has the quotes of the field before it (pyarrow 26).
        ended = text if text.endswith(b"\n") else text + b"\n"
        return csv.read_csv(
            pa.py_buffer(ended),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(ended) + 1, column_names=list(self._names), encoding="utf8"
            ),
            parse_options=csv.ParseOptions(
                delimiter=self._dialect["delimiter"], quote_char=self._dialect["quotechar"] or False
            ),
            convert_options=csv.ConvertOptions(
                # The block is known to be UTF-8.
                check_utf8=False,
                column_types=dict.fromkeys(self._kinds, pa.string()),
                include_columns=list(self._kinds),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _are_quotes_plain(text: bytes, quote: bytes, signs: bytes) -> bool:
    """Return whether quotes are around whole fields, and doubled inside of these, and no field has several lines.

    Arrow accepts other quotes too, which `csv` refuses, or treats as text.
    """
    import numpy as np

    found = np.frombuffer(text, np.uint8)
    places = np.flatnonzero(found == quote[0])
    if len(places) % 2:
        return False
    ends = np.flatnonzero(found == _NEWLINE)
    if np.any(np.searchsorted(places, ends) % 2):
        return False
    opening, closing = places[::2], places[1::2]
    is_sign = np.zeros(256, np.bool_)
    is_sign[list(signs)] = True
    before = is_sign[found[opening[opening > 0] - 1]]
    behind = is_sign[found[closing[closing < len(text) - 1] + 1]]
    return bool(before.all() and behind.all())


_NEWLINE = 10


def _as_it_is(texts: Any) -> Any:
    return texts


def _ints(texts: Any) -> Any:
    """Return ints of 64 bits; None where Arrow may read an int that the decoder refuses, such as one in hexadecimal."""
    import pyarrow as pa

    return texts.cast(pa.int64()) if _has_only(texts, b"-0123456789") else None


def _floats(texts: Any) -> Any:
    """Return floats; None if one is not finite, or may be one for Arrow only."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    if not _has_only(texts, b"-.0123456789eE"):
        return None
    found = texts.cast(pa.float64())
    return found if call_function("all", [call_function("is_finite", [found])]).as_py() is not False else None


def _bools(texts: Any) -> Any:
    """Parse strings as bools; None if there is another string."""
    import pyarrow as pa
    from pyarrow.compute import SetLookupOptions, call_function

    places = call_function("index_in", [texts], SetLookupOptions(array_of(_TRUTHS, pa.string()), skip_nulls=True))
    if places.null_count != texts.null_count:
        return None
    return call_function("less", [places, scalar_of(3, pa.int64())])


_TRUTHS = ("true", "True", "TRUE", "false", "False", "FALSE")


def _dates(texts: Any) -> Any:
    """Return the strings if each is a valid date in the format `2026-01-31`, None otherwise."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    if not _has_only(texts, b"-0123456789"):
        return None
    least = call_function("min", [texts.cast(pa.date32()).cast(pa.int32())]).as_py()
    return None if least is not None and least < _FIRST_DAY else texts


_FIRST_DAY = datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()


def _datetimes(texts: Any) -> Any:
    """Return the strings if each is a valid datetime in the format `2026-01-31T23:59:00`, or with microseconds."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    lengths = call_function("min_max", [call_function("binary_length", [texts])]).as_py()
    if lengths["min"] is None:  # All fields are empty.
        return texts
    if lengths["min"] not in (19, 26) or lengths["min"] != lengths["max"] or not _has_only(texts, b"-:T .0123456789"):
        return None
    least = call_function("min", [texts.cast(pa.timestamp("us")).cast(pa.int64())]).as_py()
    return texts if least >= _FIRST_DAY * _DAY else None


_DAY = 86_400_000_000


def _decimals(texts: Any) -> Any:
    """Return the strings if each is a number of only digits and a point, None otherwise."""
    from pyarrow.compute import MatchSubstringOptions, call_function

    found = call_function("match_substring_regex", [texts], MatchSubstringOptions(r"\A-?[0-9]+(\.[0-9]+)?\z"))
    return texts if call_function("all", [found]).as_py() is not False else None


def _has_only(texts: Any, characters: bytes) -> bool:
    """Return whether strings, in an array without an offset, have only these characters."""
    data = texts.buffers()[2]
    return data is None or not data.to_pybytes().translate(None, characters)


_READ: Mapping[type | None, Callable[[Any], Any]] = {
    str: _as_it_is,
    int: _ints,
    float: _floats,
    bool: _bools,
    datetime.date: _dates,
    datetime.datetime: _datetimes,
    decimal.Decimal: _decimals,
}
"""The readers of a column's texts as values of each class; dates and decimals remain strings, if all are valid.

Python parses these for items: Arrow takes five times as long to make objects of its dates and decimals (pyarrow 26).
"""
