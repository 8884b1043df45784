r"""Blocks of JSON lines as columns, where all lines have one layout: the same keys in one order, and no escapes.

Without a backslash, each quote begins or ends a string, so that Arrow's reader of CSV divides the lines at them: into
keys, strings, and what stands between. Keys and punctuation must be those of the first line. A block with anything else
is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dstream.connectors.files.text_columns import TextColumns, only_chunk
from dstream.schema.arrow_decoders import are_parts_plain
from dstream.schema.decoders import Decoder, ItemDecoder, RecordDecoder, ScalarDecoder, UnionDecoder, Whole
from dstream.schema.types import scalar_of

__all__ = ["JsonColumns", "can_be_columns"]


def can_be_columns(form: ItemDecoder | None) -> bool:
    """Say whether lines may become columns of the parts of these items."""
    if form is None:
        return True
    if not isinstance(form, RecordDecoder) or not form.fields or not are_parts_plain(form):
        return False
    return all(_kind(each) is not None for _, _, each, _ in form.fields)


def _kind(form: Decoder) -> type | None:
    """Return the class of the values that a form takes; None if there are several, or they have parts."""
    if isinstance(form, UnionDecoder):
        return None if form.present is None else _kind(form.present)
    if isinstance(form, Whole):
        return float
    return form.kind if isinstance(form, ScalarDecoder) and form.kind in (str, int, bool) else None


class JsonColumns(TextColumns):
    """Makes columns of blocks.

    Args:
        form: of the items; None for dictionaries, whose keys are those of the first line of a block.
    """

    fewest_lines = 2_000

    def __init__(self, form: ItemDecoder | None) -> None:
        super().__init__(form)
        self._kinds: dict[str, type] | None = None
        self._required: list[str] = []
        if isinstance(form, RecordDecoder):
            self._kinds = {name: _kind(each) or str for name, _, each, _ in form.fields}
            self._required = [name for name, _, _, is_required in form.fields if is_required]

    def _batch(self, text: bytes) -> Any:
        import pyarrow as pa

        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        text = text if text.endswith(b"\n") else text + b"\n"
        layout = _layout(text[: text.index(b"\n")]) if _is_plain(text) else None
        if layout is None or not set(self._required) <= set(layout.keys):
            return None
        try:
            parts = _parts(text, layout.size)
            arrays = _arrays(parts, layout, self._kinds) if parts.num_rows == text.count(b"\n") else None
        except pa.ArrowException:
            return None
        return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)) if arrays else None


def _is_plain(text: bytes) -> bool:
    """Say whether a block has no escapes, and of control characters only the ends of lines."""
    import numpy as np

    if b"\\" in text:
        return False
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) < _SPACE)) == text.count(b"\n")


_SPACE = 32


class _Value(NamedTuple):
    """The place of the value of a key: a part that is a string, or the token within another part.

    Attributes:
        part: its number.
        around: of a token the bytes before and behind it; None of a string.
    """

    part: int
    around: tuple[bytes, bytes] | None


class _Layout(NamedTuple):
    """The parts of a line between its quotes.

    Attributes:
        size: how many there are.
        constant: those that all lines have, by their numbers.
        keys: the place of the value of each, in order.
    """

    size: int
    constant: dict[int, bytes]
    keys: dict[str, _Value]


def _layout(line: bytes) -> _Layout | None:
    """Return the layout of a line; None if it is no object of strings, numbers, bools and nulls."""
    parts = line.split(b'"')
    constant, keys, place = {0: parts[0]}, {}, 1
    if not _BEGIN.fullmatch(parts[0]) or len(parts) > _MOST_PARTS:
        return None
    while place < len(parts) - 1:
        name, behind = parts[place].decode(), parts[place + 1]
        constant[place] = parts[place]
        if name in keys:
            return None
        if found := _TOKEN.fullmatch(behind):
            keys[name] = _Value(place + 1, (found[1], found[3]))
            behind, place = found[3], place + 2
        elif _COLON.fullmatch(behind) and place + 3 < len(parts):
            constant[place + 1], constant[place + 3] = behind, parts[place + 3]
            keys[name] = _Value(place + 2, None)
            behind, place = parts[place + 3], place + 4
        else:
            return None
        if not (_END if place == len(parts) else _COMMA).fullmatch(behind):
            return None
    return _Layout(len(parts), constant, keys) if 0 < len(keys) <= _MOST_KEYS and place == len(parts) else None


_MOST_PARTS = 1 << 12
_MOST_KEYS = 16
"""With more, the tokens of a line take longer in columns than `json` takes for it (pyarrow 26)."""
_BEGIN = re.compile(rb" *\{ *")
_COLON = re.compile(rb" *: *")
_COMMA = re.compile(rb" *, *")
_END = re.compile(rb" *\} *")
_TOKEN = re.compile(rb"( *: *)([^ ,:{}\[\]]+)( *[,}] *)")


def _parts(text: bytes, size: int) -> Any:
    """Return the parts of each line as columns of texts.

    Raises:
        ArrowException: a line has another number of quotes.
    """
    import pyarrow as pa
    from pyarrow import csv

    names = list(map(str, range(size)))
    return csv.read_csv(
        pa.py_buffer(text),
        read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names, encoding="utf8"),
        parse_options=csv.ParseOptions(delimiter='"', quote_char=False),
        # The text is known to be UTF-8.
        convert_options=csv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(names, pa.string())),
    )


def _arrays(parts: Any, layout: _Layout, kinds: Mapping[str, type] | None) -> dict[str, Any] | None:
    """Return the values of each key, if there is a kind for it or no kinds at all; None if a line is another one."""
    if not all(_are_all(only_chunk(parts.column(part)), text) for part, text in layout.constant.items()):
        return None
    found = {}
    for name, value in layout.keys.items():
        kind, texts = object if kinds is None else kinds.get(name), only_chunk(parts.column(value.part))
        array = texts if value.around is None else _values(texts, value.around, kind)
        if array is None or (value.around is None and kind not in (None, object, str)):
            return None
        if kind is not None:
            found[name] = array
    return found


def _are_all(texts: Any, text: bytes) -> bool:
    """Say whether each text of an array of its own is the same one."""
    import numpy as np

    places = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1)
    if not np.array_equal(places, np.arange(0, len(text) * (len(texts) + 1), len(text) or 1)[: len(places)]):
        return not text and not places[-1]
    data = texts.buffers()[2]
    return data is None or data.to_pybytes()[: places[-1]] == text * len(texts)


def _values(texts: Any, around: tuple[bytes, bytes], kind: type | None) -> Any:
    """Return the values of tokens; None if a text has something else around its token, or a token is of another kind.

    Args:
        texts: the tokens, with what is around them.
        around: which bytes these are.
        kind: of the values; object for any that all have, None if nobody needs them.
    """
    import pyarrow as pa
    from pyarrow.compute import call_function

    before, behind = around
    tokens = _within(texts, before, behind)
    if tokens is None:
        return None
    is_null = call_function("equal", [tokens, scalar_of("null", pa.string())])
    if call_function("any", [is_null]).as_py():
        tokens = call_function("if_else", [is_null, pa.NA, tokens])
    return next((read for read in _read(tokens, kind) if read is not None), None)


def _within(texts: Any, before: bytes, behind: bytes) -> Any:
    """Return texts without what is before and behind a token in each; None if one has something else there."""
    from pyarrow.compute import MatchSubstringOptions, SliceOptions, call_function

    for function, text in (("starts_with", before), ("ends_with", behind)):
        if not call_function("all", [call_function(function, [texts], MatchSubstringOptions(text.decode()))]).as_py():
            return None
    return call_function("utf8_slice_codeunits", [texts], SliceOptions(len(before), -len(behind)))


def _read(tokens: Any, kind: type | None) -> Iterator[Any]:
    """Yield the values as each class that the kind allows, of which there is one at most; None for each other one."""
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
    """Say whether a token may be an int that Python refuses to parse."""
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
    """Return floats; None if one is -0.0, which is not that of the int `-0`."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    if floats is None:
        return None
    zero, one = (scalar_of(number, pa.float64()) for number in (0.0, 1.0))
    is_zero = call_function("equal", [floats, zero])
    inverse = call_function("divide", [one, call_function("if_else", [is_zero, floats, one])])
    return None if call_function("any", [call_function("less", [inverse, zero])]).as_py() else floats
