r"""Blocks of JSON lines as columns, where the objects of all lines have the same keys in one order.

Without a backslash, each quote begins or ends a string, so that Arrow's reader of CSV divides the lines at them: into
keys, strings, and the text between these. Keys and punctuation must be those of the most usual layout. Other lines, as
those with an escape, or with a null in the place of a string, are parsed by `json`, and their values put between the
others. A block whose objects have other keys, or arrays, is read line by line.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dstream.connectors.files.text_columns import TextColumns, only_chunk, values_of_tokens
from dstream.schema.arrow_decoders import are_parts_plain
from dstream.schema.decoders import Decoder, ItemDecoder, RecordDecoder, ScalarDecoder, UnionDecoder, Whole
from dstream.schema.types import scalar_of
from dstream.spi import ArrowRows

__all__ = ["JsonColumns", "can_be_columns"]


def can_be_columns(form: ItemDecoder | None) -> bool:
    """Return whether lines may become columns of the parts of these items."""
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
        form: of the items; None for dictionaries, whose keys are those of the most usual lines of a block.
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
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = _Lines(text if text.endswith(b"\n") else text + b"\n")
        found = self._columns(lines) if lines.are_plain() else None
        return self._columns(lines) if found is None and lines.divide() else found

    def _columns(self, lines: _Lines) -> Any:
        import pyarrow as pa

        layout = _layout(lines.usual[: lines.usual.index(b"\n")])
        if layout is None or not set(self._required) <= {path[0] for path in layout.values}:
            return None
        kinds = layout.kinds(self._kinds)
        if kinds is None or not lines.has_likely_others(layout):
            return None
        try:
            parts = lines.fitting(_parts(lines.usual, layout.size), layout)
            arrays = None if parts is None else _arrays(parts, layout, kinds)
            arrays = None if arrays is None else lines.completed(arrays, layout, kinds)
        # It is no JSON, an int or a text that Arrow does not have, or nested too deeply.
        except (pa.ArrowException, ValueError, OverflowError, RecursionError):
            return None
        return layout.batch(arrays) if arrays else None

    def _rows(self, batch: Any) -> ArrowRows | None:
        import pyarrow as pa

        rows = super()._rows(batch)
        if rows is None or not any(pa.types.is_struct(field.type) for field in batch.schema):
            return rows
        parts = dict(rows.parts)
        for field in batch.schema:
            if pa.types.is_struct(field.type):  # Objects are rows of dictionaries, too; there are none in a class.
                names = [part.name for part in field.type]
                inner = pa.RecordBatch.from_arrays(batch.column(field.name).flatten(), names)
                parts[field.name] = functools.partial(self._rows, inner)
        return replace(rows, parts=parts)


class _Lines:
    """The lines of a block: those of the most usual layout, and others.

    Attributes:
        usual: the first of these, one after another.
    """

    def __init__(self, text: bytes) -> None:
        self._text = self.usual = text
        self._places: Any = None
        """The indexes of usual lines; None for all."""

    def are_plain(self) -> bool:
        """Return whether there are no escapes, and of control characters only the ends of lines."""
        import numpy as np

        if b"\\" in self._text:
            return False
        return int(np.count_nonzero(np.frombuffer(self._text, np.uint8) < _SPACE)) == self._text.count(b"\n")

    def divide(self) -> bool:
        """Take lines with the most usual number of quotes, and without escapes, for usual.

        Returns:
            Whether these are not all lines, and the others few.
        """
        import numpy as np

        if not self._begins_with_few():
            return False
        are_usual, quotes = self._usual()
        self._places = None
        if are_usual.all() or not self._keep(are_usual, quotes):
            return False
        data = np.frombuffer(self._text, np.uint8)
        self.usual = data[np.repeat(are_usual, np.diff(self._ends, prepend=-1))].tobytes()
        return True

    def _begins_with_few(self) -> bool:
        """Return whether other lines among the first are at most twice the limit: to look at all lines costs more."""
        first = _Lines(self._text[: self._text.find(b"\n", _FIRST_BYTES) + 1])
        are_usual, quotes = first._usual()
        return max(_FEW, quotes) * (len(are_usual) - int(are_usual.sum())) <= 2 * len(are_usual)

    def _usual(self) -> tuple[Any, int]:
        """Return which lines have the most usual number of quotes, and no escapes; and that number."""
        import numpy as np

        data = np.frombuffer(self._text, np.uint8)
        counts = self._counts(data == _QUOTE)
        has_others = self._counts(((data < _SPACE) & (data != _LINE_END)) | (data == _BACKSLASH)) > 0
        quotes = _most_common(counts[~has_others])
        return ~has_others & (counts == quotes), quotes

    @functools.cached_property
    def _ends(self) -> Any:
        import numpy as np

        return np.flatnonzero(np.frombuffer(self._text, np.uint8) == _LINE_END)

    def _counts(self, are_there: Any) -> Any:
        """Return how many of some bytes are in each line."""
        import numpy as np

        return np.diff(np.searchsorted(np.flatnonzero(are_there), self._ends), prepend=0)

    def _keep(self, are_usual: Any, quotes: int) -> bool:
        """Keep usual lines; return whether others are few: to parse one takes as long as many in columns.

        Args:
            are_usual: which of them are kept.
            quotes: how many a usual line has.
        """
        import numpy as np

        self._places = np.flatnonzero(are_usual) if self._places is None else self._places[are_usual]
        return max(_FEW, quotes) * (len(self._ends) - len(self._places)) <= len(self._ends)

    def fitting(self, parts: Any, layout: _Layout) -> Any:
        """Return the usual lines that have a layout, by their parts; None if these are few."""
        if parts.num_rows != (self._text.count(b"\n") if self._places is None else len(self._places)):
            return None
        fit = layout.fits(parts)
        if fit is None:
            return parts
        return parts.filter(fit) if self._keep(fit.to_numpy(zero_copy_only=False), layout.size - 1) else None

    def completed(self, arrays: dict[_Path, Any], layout: _Layout, kinds: Mapping[_Path, type | None]) -> Any:
        """Return the values of all lines, given those of the usual ones; None if others have no such values.

        Raises:
            ValueError: a line is no JSON, or an object with other keys.
        """
        import numpy as np
        import pyarrow as pa

        if self._places is None:
            return arrays
        others = self._others()
        columns = zip(*self._parsed(others, layout), strict=True)
        values = dict(zip(layout.values, columns, strict=True))
        order = np.argsort(np.concatenate([self._places, others]), kind="stable")
        found = {}
        for path, usual in arrays.items():
            more = _array(values[path], usual, kinds[path])
            if more is None:
                return None
            found[path] = ArrowRows.chosen(pa.concat_arrays([usual.cast(more.type), more]), order)
        return found

    def has_likely_others(self, layout: _Layout) -> bool:
        """Return whether the first of the other lines, if one is known, is an object with the keys of a layout."""
        if self._places is not None:
            try:
                next(self._parsed(self._others()[:1], layout))
            except (ValueError, RecursionError):
                return False
        return True

    def _others(self) -> Any:
        """Return the places of the lines that are not usual."""
        import numpy as np

        are_others = np.ones(len(self._ends), np.bool_)
        are_others[self._places] = False
        return np.flatnonzero(are_others)

    def _parsed(self, places: Any, layout: _Layout) -> Iterator[Sequence[Any]]:
        """Yield the values of lines.

        Raises:
            ValueError: a line is no JSON, or an object with other keys.
        """
        leaves = _values_of if all(len(path) == 1 for path in layout.values) else _leaves
        for place in places.tolist():
            start = int(self._ends[place - 1]) + 1 if place else 0
            # Of bytes `json` reads other encodings, too.
            value = json.loads(self._text[start : int(self._ends[place])].decode())
            if type(value) is not dict or list(value) != list(layout.shape):
                raise ValueError("another layout")
            yield leaves(value, layout.shape)


def _values_of(value: dict[str, Any], shape: _Shape) -> Sequence[Any]:
    return list(value.values())


def _most_common(counts: Any) -> int:
    import numpy as np

    values, numbers = np.unique(counts, return_counts=True)
    return int(values[numbers.argmax()]) if len(values) else 0


def _leaves(value: dict[str, Any], shape: _Shape) -> Sequence[Any]:
    """Return the values of an object that are none, in order.

    Raises:
        ValueError: one of its objects has other keys.
    """
    found: list[Any] = []
    for name, inner in shape.items():
        of = value[name]
        if inner is None:
            found.append(of)
        elif type(of) is dict and list(of) == list(inner):
            found += _leaves(of, inner)
        else:
            raise ValueError("another layout")
    return found


def _array(values: Sequence[Any], usual: Any, kind: type | None) -> Any:
    """Return values as an array; None if one is of another class than the usual ones.

    Args:
        values: of other lines.
        usual: those of the usual lines.
        kind: of the values; object for any that all have.
    """
    import pyarrow as pa

    kinds = {type(each) for each in values if each is not None}
    if kind is float and int in kinds:
        values, kinds = [float(each) if type(each) is int else each for each in values], (kinds - {int}) | {float}
    if not kinds:
        return pa.nulls(len(values), usual.type)
    own = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}.get(next(iter(kinds)))
    if len(kinds) > 1 or own is None or (own != usual.type and usual.null_count < len(usual)):
        return None
    return pa.array(values, own)


_LINE_END, _QUOTE, _BACKSLASH = b'\n"\\'
_SPACE = 32


class _Value(NamedTuple):
    """The place of the value of a key: a part that is a string, or the token within another part.

    Attributes:
        part: its number.
        around: of a token the bytes before and behind it; None of a string.
    """

    part: int
    around: tuple[bytes, bytes] | None


_Path = tuple[str, ...]
_Shape = dict[str, "_Shape | None"]
"""The keys of an object; of a value that is none, None."""


class _Layout(NamedTuple):
    """The parts of a line between its quotes.

    Attributes:
        size: how many there are.
        constant: those that all lines have, by their numbers.
        values: the place of each, by the keys that lead to it, in order.
        shape: the keys.
    """

    size: int
    constant: dict[int, bytes]
    values: dict[_Path, _Value]
    shape: _Shape

    def kinds(self, of_fields: Mapping[str, type] | None) -> dict[_Path, type | None] | None:
        """Return the kind of each value, given those of the fields of a class: object for any if there is no class.

        It is None of a value that has no field, and there are no kinds if the value of a field is an object.
        """
        if of_fields is None:
            return dict.fromkeys(self.values, object)
        if any(of_fields.get(path[0]) for path in self.values if len(path) > 1):
            return None
        return {path: of_fields.get(path[0]) if len(path) == 1 else None for path in self.values}

    def fits(self, parts: Any) -> Any:
        """Return for each line whether it has this layout, but for its tokens; None if all have it."""
        from pyarrow.compute import MatchSubstringOptions, call_function

        found: list[Any] = []
        for part, text in self.constant.items():
            column = only_chunk(parts.column(part))
            if not _are_all(column, text):
                found.append(call_function("equal", [column, scalar_of(text.decode(), column.type)]))
        for part, around in ((value.part, value.around) for value in self.values.values() if value.around):
            for function, text in zip(("starts_with", "ends_with"), around, strict=True):
                options = MatchSubstringOptions(text.decode())
                found.append(call_function(function, [only_chunk(parts.column(part))], options))
        found = [each for each in found if each.false_count]
        return functools.reduce(lambda one, other: call_function("and", [one, other]), found) if found else None

    def batch(self, arrays: Mapping[_Path, Any]) -> Any:
        """Return the values as columns, those of objects as structs."""
        import pyarrow as pa

        columns = _columns(arrays, self.shape, ())
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns)) if columns else None


def _columns(arrays: Mapping[_Path, Any], shape: _Shape, above: _Path) -> dict[str, Any]:
    import pyarrow as pa

    found = {}
    for name, inner in shape.items():
        if inner is not None:
            parts = _columns(arrays, inner, (*above, name))
            if parts:
                found[name] = pa.StructArray.from_arrays(list(parts.values()), list(parts))
        elif (*above, name) in arrays:
            found[name] = arrays[*above, name]
    return found


def _layout(line: bytes) -> _Layout | None:
    """Return the layout of a line; None if it is no object of strings, numbers, bools, nulls and such objects."""
    parts, shape = line.split(b'"'), _Shape()
    constant, values, place = {0: parts[0]}, dict[_Path, _Value](), 1
    path, objects = list[str](), [shape]
    if not _BEGIN.fullmatch(parts[0]) or len(parts) > _MOST_PARTS:
        return None
    while place < len(parts) - 1:
        name, behind = parts[place].decode(), parts[place + 1]
        constant[place] = parts[place]
        if name in objects[-1]:
            return None
        if _OBJECT.fullmatch(behind):
            if len(objects) > _MOST_LEVELS:
                return None
            constant[place + 1] = behind
            inner: _Shape = {}
            objects[-1][name] = inner
            objects.append(inner)
            path.append(name)
            place += 2
            continue
        objects[-1][name] = None
        if found := _TOKEN.fullmatch(behind):
            values[*path, name] = _Value(place + 1, (found[1], found[3]))
            behind, place = found[3], place + 2
        elif _COLON.fullmatch(behind) and place + 3 < len(parts):
            constant[place + 1], constant[place + 3] = behind, parts[place + 3]
            values[*path, name] = _Value(place + 2, None)
            behind, place = parts[place + 3], place + 4
        else:
            return None
        closed, is_end = behind.count(b"}"), place == len(parts)
        if not (_END if is_end else _COMMA).fullmatch(behind) or closed > len(path) + is_end:
            return None
        del path[max(len(path) - closed, 0) :], objects[len(objects) - closed :]
    is_whole = place == len(parts) and not objects
    return _Layout(len(parts), constant, values, shape) if is_whole and 0 < len(values) <= _MOST_KEYS else None


_FEW = 8
"""Other lines are at most one in this number, and in the number of quotes of a line: each of its parts takes time."""
_FIRST_BYTES = 1 << 16
_MOST_PARTS = 1 << 12
_MOST_LEVELS = 16
_MOST_KEYS = 16
"""With more, the tokens of a line take longer in columns than `json` takes for it (pyarrow 26)."""
_BEGIN = re.compile(rb" *\{ *")
_COLON = re.compile(rb" *: *")
_OBJECT = re.compile(rb" *: *\{ *")
_COMMA = re.compile(rb"[ }]*, *")
_END = re.compile(rb"[ }]*\}[ }]*")
_TOKEN = re.compile(rb"( *: *)([^ ,:{}\[\]]+)([ }]*(?:,|\}) *)")


def _parts(text: bytes, size: int) -> Any:
    """Return the parts of each line as columns of texts.

    Raises:
        pyarrow.ArrowException: a line has another number of quotes.
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


def _arrays(parts: Any, layout: _Layout, kinds: Mapping[_Path, type | None]) -> dict[_Path, Any] | None:
    """Return the values of the lines of a layout for which there is a kind; None if one is of another kind."""
    found = {}
    for path, value in layout.values.items():
        kind, texts = kinds[path], only_chunk(parts.column(value.part))
        array = texts if value.around is None else _values(texts, value.around, kind)
        if array is None or (value.around is None and kind not in (None, object, str)):
            return None
        if kind is not None:
            found[path] = array
    return found


def _are_all(texts: Any, text: bytes) -> bool:
    """Return whether each text of an array of its own is the same one."""
    import numpy as np

    places = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1)
    if not np.array_equal(places, np.arange(0, len(text) * (len(texts) + 1), len(text) or 1)[: len(places)]):
        return not text and not places[-1]
    data = texts.buffers()[2]
    return data is None or data.to_pybytes()[: places[-1]] == text * len(texts)


def _values(texts: Any, around: tuple[bytes, bytes], kind: type | None) -> Any:
    """Return the values of tokens; None if a token is of another kind.

    Args:
        texts: the tokens, with what is around them.
        around: which bytes these are.
        kind: of the values; object for any that all have, None if no step needs them.
    """
    import pyarrow as pa
    from pyarrow.compute import SliceOptions, call_function

    before, behind = around
    tokens = call_function("utf8_slice_codeunits", [texts], SliceOptions(len(before), -len(behind)))
    is_null = call_function("equal", [tokens, scalar_of("null", pa.string())])
    if call_function("any", [is_null]).as_py():
        tokens = call_function("if_else", [is_null, pa.NA, tokens])
    return next((read for read in values_of_tokens(tokens, kind) if read is not None), None)
