"""Files by chance, read in columns and row by row: CSV and JSON lines with damage, odd numbers, and several encodings.

What `read` gives is right: value, type, order, and the failure with its text.
`python -m tests.soak.columns --kinds reader --programs 20000` runs many and says how many blocks stood in columns.
"""

from __future__ import annotations

import dataclasses
import datetime
import gzip
import struct
import tempfile
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, NotRequired
from unittest.mock import patch

from dstream.connectors.files import csv as csv_files
from dstream.connectors.files import lines, text_columns
from dstream.connectors.files.csv_columns import CsvColumns
from dstream.connectors.files.json_columns import JsonColumns
from dstream.connectors.files.json_lines import JsonReader
from dstream.spi import ArrowRows
from sources import csv_rows, json_lines
from tests.differential.column_programs import Checks, judged, told

__all__ = ["main", "one_by_one"]


def main(first: int, last: int) -> Counter[str]:
    """Read files; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, counted_blocks(counts):
        return judged(range(first, last), partial(_checks_of, Path(folder)), counts)


def one_by_one() -> Counter[str]:
    """Read a file for each odd text beside usual ones; print those that differ, and return what became of all."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, counted_blocks(counts):
        made = [*_odd_csv_files(Path(folder)), *_odd_json_files(Path(folder))]
        return judged(range(len(made)), lambda number: _checks_on(made[number](), Random(number)), counts)


def _checks_of(folder: Path, seed: int) -> tuple[str, Checks]:
    random = Random(seed)
    made = _csv_file(folder, random) if random.random() < 0.6 else _json_file(folder, random)
    return _checks_on(made, random)


def _checks_on(made: _Made, random: Random) -> tuple[str, Checks]:
    with ExitStack() as patches:
        for module, name, values in _SIZES:
            patches.enter_context(patch.object(module, name, random.choice(values)))
        rows, found = _outcome(made.split, _by_columns), _outcome(made.split, lambda split: split.read())
    return made.text, [(found[0], rows, [found])]


_SIZES: list[tuple[Any, str, tuple[int, ...]]] = [
    (lines, "_TEXT_BLOCK", (1, 60, 300, 4000)),
    (lines, "_PIECE", (1, 20, 300)),
    (lines, "BLOCK", (1, 20, 60, 300, 4000)),
    (csv_files, "ROWS", (1, 2, 7, 128)),
    (text_columns, "_MOST_FAILURES", (1, 1, 3)),
    (CsvColumns, "fewest_lines", (0,)),
    (CsvColumns, "fewest_bytes", (0,)),
    (JsonColumns, "fewest_lines", (0,)),
    (csv_files.CsvReader, "fewest_bytes", (0,)),
    (JsonReader, "fewest_bytes", (0,)),
]


def _outcome(split: Any, read: Callable[[Any], Iterator[Any]]) -> Any:
    """Return what a split gives, and how it fails."""
    given: list[Any] = []
    try:
        given.extend(read(split))
    except Exception as error:
        cause = error.__cause__
        return "fails", told(given), type(error), str(error), type(cause), str(cause)
    return "gives", told(given)


def _by_columns(split: Any) -> Iterator[Any]:
    """Give the items of rows, whose parts are those of the columns."""
    rows = split.arrow_rows()
    if rows is None:
        yield from split.read()
        return
    for each in rows:
        if not isinstance(each, ArrowRows):
            yield from each
            continue
        items = list(each.items(slice(0, each.size)))
        for name, part in each.parts.items():
            parts = [item[name] if "key" in each.reached_by else getattr(item, name) for item in items]
            values = _values(part())
            assert values is None or told(parts) == told(values), name
        yield from items


def _values(column: Any) -> Any:
    """Return the values of a part, those of objects by the parts of these; None if there are none in columns."""
    if not isinstance(column, ArrowRows):
        return None if column is None else column.to_pylist()
    parts = {name: _values(part()) for name, part in column.parts.items()}
    assert told(list(column.items(slice(0, column.size)))) == told(
        [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    )
    return list(column.items(slice(0, column.size)))


@contextmanager
def counted_blocks(counts: Counter[str]) -> Iterator[None]:
    """Count the blocks that are read in columns, and all that might be."""
    read = text_columns.TextColumns.rows

    def counted(columns: Any, text: bytes) -> ArrowRows | None:
        found = read(columns, text)
        counts["blocks"] += 1
        counts["blocks in columns"] += found is not None
        return found

    with patch.object(text_columns.TextColumns, "rows", counted):
        yield


@dataclass(frozen=True)
class _Made:
    """A split of one file, and what is shown of it."""

    split: Any
    text: str


# ---------------------------------------------------------------------------------------------------------------- CSV


def _csv_file(folder: Path, random: Random) -> _Made:
    names = random.sample(_NAMES, random.randrange(1, 5))
    columns = {name: random.choice(_COLUMNS[: None if random.random() < 0.1 else -1]) for name in names}
    delimiter, quote = (
        random.choice((*[","] * 6, ";", "\t", "|", " ", "x", "'")),
        random.choice((*['"'] * 6, "'", None)),
    )
    quote = '"' if quote == delimiter else quote
    oddities = _Oddities(("cell", "cell", "cell", "torn", "row", "byte"), random)
    has_header = random.random() < 0.8
    text = _csv_text(names if has_header else [], columns, delimiter, quote or "", oddities, random)
    encoding = random.choice((*["utf-8"] * 6, "utf-8-sig", "latin-1", "cp1252", "ascii", "utf-16", "shift_jis"))
    data = text.encode(encoding, random.choice(("replace", "ignore")))
    data = _damaged(data, random) if oddities.are_here("byte", oddities.row) else data
    path = folder / ("a.csv.gz" if random.random() < 0.1 else "a.csv")
    path.write_bytes(_torn_sometimes(gzip.compress(data), random) if path.suffix == ".gz" else data)
    kind, said = _kind({name: column.hints for name, column in columns.items()}, random)
    options: dict[str, Any] = {"delimiter": delimiter, "quotechar": quote, "encoding": encoding}
    if not has_header:
        options["fieldnames"] = names
    if random.random() < 0.1:
        options["max_record"] = random.choice((5, 12, 40))
    shown = f"{said} of {data!r} with {options}"
    try:
        [split] = csv_rows(path, kind=kind, **options).splits(1)
    except (TypeError, ValueError) as error:
        return _Made(_Refused(error), shown)
    return _Made(split, shown)


class _Oddities:
    """Says where a file is odd: nowhere, in one place, or anywhere at a rate.

    Attributes:
        row: the row of the place.
    """

    def __init__(self, kinds: tuple[str, ...], random: Random) -> None:
        self._random = random
        self._rate = random.choice((0, None, None, None, 0.01, 0.1))
        self._kind, self.row = random.choice(kinds), random.randrange(3, 30)

    def are_here(self, kind: str, row: int) -> bool:
        """Say whether a row has something of a kind."""
        if self._rate is not None:
            return self._random.random() < self._rate
        is_here = kind == self._kind and row == self.row and self._random.random() < 0.5
        self.row = self.row if not is_here else -1
        return is_here


def _torn_sometimes(data: bytes, random: Random) -> bytes:
    return data if random.random() < 0.5 else data[: -random.randrange(1, len(data) // 2)]


def _damaged(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    damage = random.choice((b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x81"))
    return data[:place] + damage + data[place:]


@dataclass(frozen=True)
class _Refused:
    """A split of a source that is refused."""

    error: Exception

    def read(self) -> Iterator[Any]:
        raise self.error

    def arrow_rows(self) -> None:
        return None


class _Column(NamedTuple):
    """A column of files.

    Attributes:
        usual: makes a text.
        odd: texts that are read in another way, or by one of two readers, or by none.
        hints: annotations that take most of the texts.
    """

    usual: Callable[[Random], str]
    odd: tuple[str, ...]
    hints: tuple[Any, ...]


def _float_text(random: Random) -> str:
    if random.random() < 0.5:
        return repr(random.choice((random.uniform(-100, 100), random.randrange(10_000) / 100, random.random() * 10**9)))
    [value] = struct.unpack("d", random.randbytes(8))
    digits = "".join(random.choices("0123456789", k=random.randrange(1, 40)))
    written = (
        repr(value) if value - value == 0 else "0.0",
        f"{digits}.{digits[::-1]}",
        f"-{digits}e-{len(digits)}",
        f".{digits}",
    )
    return random.choice(written)


def _int_text(random: Random) -> str:
    return str(
        random.choice((random.randrange(100), random.randrange(-(10**6), 10**6), random.randrange(-(2**63), 2**63)))
    )


_WORDS = (
    "tea",
    "cake",
    "a b",
    " x",
    "x ",
    "NA",
    "null",
    "nan",
    "None",
    "true",
    "-",
    "#1",
    "0",
    "007",
    "\\n",
    "=1",
    "N/A",
)
_ODD_TEXTS = (
    "é",
    "ß",
    "𝄞",
    "\ufeffx",
    "\x1c",
    "\x85",
    "\u2028",
    "\x0b",
    "\x0c",
    "'",
    "\\",
    "\\,",
    "日本",
    "\x7f",
    "\x1a",
    "a'b",
    "\t",
)
_COLUMNS = [
    _Column(
        _int_text,
        (
            "+5",
            "007",
            "-007",
            "1_000",
            " 5",
            "5 ",
            "\t5",
            "0x10",
            "1.0",
            "1e3",
            "٣",
            "\uff11\uff12",
            "--5",
            "-",
            "5-3",
            "9" * 30,
            "-0",
            "+0",
        )
        + (
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "true",
            "5\xa0",
        ),
        (int, int, int, int | None, float, str),
    ),
    _Column(
        _float_text,
        (
            "nan",
            "nan(1)",
            "inf",
            "-inf",
            "Infinity",
            "1e400",
            "-1e400",
            "1e-400",
            "1_0.5",
            " 1.5",
            "1.5 ",
            "0x1p3",
            "1.5f",
            "1E+5",
            "+1.5",
        )
        + (
            "1d5",
            "1e",
            ".",
            "-.",
            "5.",
            "-5.e3",
            "e5",
            "-0.0",
            "-0",
            "2.5e-324",
            "4.9406564584124654e-324",
            "1.7976931348623159e308",
        )
        + ("\u0663.\u0665", "1e5.5", "1.5.5", "1--5", "1e+400", "0e400", "00.5", "1.5\xa0"),
        (float, float, float, float | None, str),
    ),
    _Column(
        lambda random: random.choice(("true", "false", "True", "False", "TRUE", "FALSE")),
        ("1", "0", "tRUE", " true", "true ", "t", "yes", "fal\u017fe"),
        (bool, bool, bool | None, str),
    ),
    _Column(
        lambda random: datetime.date.fromordinal(random.randrange(1, 3_652_060)).isoformat(),
        (
            "20260131",
            "2026-1-31",
            "2026-01-1",
            "0000-01-01",
            "0001-01-01",
            "2026-02-30",
            "2024-02-29",
            "2023-02-29",
            "2026-W01-1",
        )
        + (
            "9999-12-31",
            "10000-01-01",
            "-001-01-01",
            "2026-01-31T00:00:00",
            "2026-13-01",
            "2026-00-10",
            "2026/01/31",
            " 2026-01-31",
        )
        + ("2026-01-31 ", "٢٠٢٦-01-31", "--------01", "2026--1-01"),
        (datetime.date, datetime.date, datetime.date | None, str),
    ),
    _Column(lambda random: random.choice(_WORDS), _ODD_TEXTS, (str, str, str | None)),
    _Column(
        lambda random: f"{random.randrange(-99, 99)}.{random.randrange(10)}{random.randrange(10)}",
        (
            "2.5",
            "1E+3",
            "nan",
            "1_0",
            " 1",
            "-0.00",
            "-0.00 ",
            "-00.00",
            "-000.00",
            "-0000.00",
            "0.00",
            "-.50",
            ".50",
            "5",
            "5.",
            "-5.",
            "007.50",
            "1.2.3",
            "--1.00",
            "1-1.00",
            ".",
            "-",
        )
        + (
            "9" * 40 + ".00",
            "9" * 36 + ".25",
            "sNaN",
            "\u0663.25",
            "+1.00",
            "1.00 ",
            "-0.0000000000000000000000000000000000000000",
        ),
        (Decimal, Decimal, Decimal | None, str),
    ),
    _Column(
        lambda random: str(
            datetime.datetime(2026, random.randrange(1, 13), random.randrange(1, 29), random.randrange(24), 59)
        ),
        (
            "2026-01-31",
            "2026-01-31T10:00:00",
            "2026-01-31T10:00:00.5",
            "2026-01-31 10:00:00.123456",
            "2026-01-31T10:00",
            "20260131T100000",
        )
        + (
            "2026-01-31T24:00:00",
            "2026-01-31T23:59:60",
            "2026-01-31T10:00:00Z",
            "2026-01-31-10:00:00",
            "2026-02-30 10:00:00",
        )
        + (
            "0000-01-01 00:00:00",
            "0001-01-01 00:00:00",
            "9999-12-31 23:59:59",
            "2026-01-31 10.00.00",
            "2026-01-31 1 :00:00",
            "2026-01-31  0:00:00",
        )
        + (
            "2026-01-31T10:00:00.1-0500",
            "2026-01-31 10:00:00.00000 ",
            "2026-W05-6T10:00:00",
            " 026-01-31 10:00:00",
            "2026-01-31T10:00-01",
        ),
        (datetime.datetime, datetime.datetime, datetime.datetime | None, str),
    ),
    _Column(lambda random: "0:1:2:3:4:5:6:7", ("::", "::1"), (IPv6Address, str)),
]
_NAMES = ("number", "count", "key", "value", "é", "a b", "")


def _odd_csv_files(folder: Path) -> Iterator[Callable[[], _Made]]:
    """Give what makes a file for each odd text of each column and each of its types."""
    for column, hint in ((each, hint) for each in _COLUMNS for hint in dict.fromkeys((*each.hints, None))):
        marked = (f"\ufeff{n}" for n in range(12))  # Some of them begin a block.
        cut = (f"{column.usual(Random(n))}\ra,{column.usual(Random(n))}" for n in range(6))
        for text in (*column.odd, "", '""', '"a""b"', 'a"b', '"a"b', '"a', '"1\n2"', "1\r2", "1,2", *marked, *cut):
            yield partial(_odd_csv_file, folder, column, hint, text)


def _odd_csv_file(folder: Path, column: _Column, hint: Any, text: str) -> _Made:
    random = Random(text)
    rows = [f"a,{column.usual(random)}" for _ in range(12)]
    place = random.choice((8, 9, 11))
    rows[place] = f"{text},{column.usual(random)}" if text.startswith("\ufeff") else f"a,{text}"
    rows += ["a"] * ("\ra" in text)  # An error behind a lone "\r" has the number of its line.
    (folder / "odd.csv").write_text("\n".join(["key,value", *rows]), encoding="utf-8", newline="")
    kind = None if hint is None else _class({"key": str, "value": hint})
    [split] = csv_rows(folder / "odd.csv", kind=kind).splits(1)
    return _Made(split, f"{hint} of {rows}")


def _csv_text(
    header: list[str], columns: dict[str, _Column], delimiter: str, quote: str, odd: _Oddities, random: Random
) -> str:
    end = random.choice(("\n", "\n", "\n", "\r\n", "\r"))
    quoting = random.choice((0, 0, 0.1, 1))
    empty = {name: random.choice((0, 0, 0, 0.1, 0.1, 1)) for name in columns}
    found = [delimiter.join(_cell(name, delimiter, quote, 0) for name in header)] if header else []
    for row in range(random.choice((0, 1, 10, 30, 30, 40, 60))):
        cells = []
        for name, column in columns.items():
            if odd.are_here("cell", row):
                cells.append(random.choice((*column.odd, "", quote * 2)))
            elif odd.are_here("torn", row):
                cells.append(_torn(quote, delimiter, random))
            elif random.random() < empty[name]:
                cells.append(random.choice(("", "", quote * 2)))
            else:
                cells.append(_cell(column.usual(random), delimiter, quote, quoting if random.random() < quoting else 0))
        found.append(delimiter.join(cells))
        if odd.are_here("row", row):
            found[-1] = random.choice(
                (found[-1] + delimiter, found[-1] + delimiter + "1", "", " ", cells[0], quote, found[-1] + end + end)
            )
    return ("\ufeff" if random.random() < 0.05 else "") + end.join(found) + random.choice((end, end, end, "", end * 2))


def _cell(text: str, delimiter: str, quote: str, quoting: float) -> str:
    is_special = any(each and each in text for each in (delimiter, quote, "\n", "\r"))
    if not quote:
        return text.replace(delimiter, "_")
    return quote + text.replace(quote, quote * 2) + quote if is_special or quoting else text


def _torn(quote: str, delimiter: str, random: Random) -> str:
    """Return a field with quotes, of which Arrow and `csv` take some in other ways."""
    parts = (quote, quote, quote * 2, "a", delimiter, "\n", " ", "\r", "1", quote * 3)
    return "".join(random.choices(parts, k=random.randrange(1, 6)))


# --------------------------------------------------------------------------------------------------------------- JSON


def _json_file(folder: Path, random: Random) -> _Made:
    names = random.sample(_KEYS, random.randrange(1, 5))
    values = {name: random.choice(_VALUES[: None if random.random() < 0.1 else _USUAL]) for name in names}
    values = {name: (_null if random.random() < 0.1 else make, hints) for name, (make, hints) in values.items()}
    odd = _Oddities(("value", "value", "value", "key", "keys", "line", "byte"), random)
    colon, comma = random.choice(((": ", ", "), (": ", ", "), (":", ","), (" : ", " , "), (":\t", ",")))
    end, found = random.choice(("\n", "\n", "\n", "\r\n", "\r")), []
    for row in range(random.choice((0, 1, 10, 30, 30, 40, 60))):
        parts = []
        for name, (make, _) in values.items():
            written = random.choice(_ODD_VALUES) if odd.are_here("value", row) else make(random)
            key = random.choice(_ODD_KEYS) if odd.are_here("key", row) else f'"{name}"'
            parts.append(key + colon + written)
        if odd.are_here("keys", row):
            random.shuffle(parts)
            parts = random.choice((parts, parts[1:], [*parts, parts[0]], [*parts, '"more"' + colon + "1"]))
        found.append("{" + comma.join(parts) + "}")
        if odd.are_here("line", row):
            found[-1] = random.choice(_DAMAGES).replace("L", found[-1]).replace("E", end)
    text = end.join(found) + random.choice((end, end, ""))
    encoding = random.choice((*["utf-8"] * 6, "utf-8-sig", "latin-1", "ascii", "utf-16"))
    data = text.encode(encoding, "replace")
    data = _damaged(data, random) if odd.are_here("byte", odd.row) else data
    path = folder / "a.jsonl"
    path.write_bytes(data)
    kind, said = _kind({name: hints for name, (_, hints) in values.items()}, random)
    options: dict[str, Any] = {"encoding": encoding}
    if random.random() < 0.05:
        options["max_record"] = random.choice((5, 40, 80))
    return _Made(random.choice(json_lines(path, kind=kind, **options).splits(3)), f"{said} of {data!r} with {options}")


def _odd_json_files(folder: Path) -> Iterator[Callable[[], _Made]]:
    """Give what makes a file for each odd text of each kind of values, and of a line, and each of its types."""
    for make, hint in dict.fromkeys((make, hint) for make, hints in _VALUES[:_USUAL] for hint in (*hints, None)):
        for text in _ODD_VALUES:
            yield partial(_odd_json_file, folder, make, hint, f'{{"key": "a", "value": {text}, "last": 1}}')
        for key in _ODD_KEYS:
            yield partial(_odd_json_file, folder, make, hint, f'{{"key": "a", {key}: {make(Random(1))}, "last": 1}}')
        for line in (*_DAMAGES, *_OTHER_LINES):
            usual = f'{{"key": "a", "value": {make(Random(1))}, "last": 1}}'
            damaged = line.replace("VALUE", make(Random(1))).replace("L", usual).replace("E", "\n")
            yield partial(_odd_json_file, folder, make, hint, damaged)


def _odd_json_file(folder: Path, make: Callable[[Random], str], hint: Any, line: str) -> _Made:
    random = Random(line)
    lines = [f'{{"key": "a", "value": {make(random)}, "last": 1}}' for _ in range(12)]
    lines[random.choice((0, 8, 11))] = line
    (folder / "odd.jsonl").write_text("\n".join(lines), encoding="utf-8", newline="")
    kind = None if hint is None else _class({"key": str, "value": hint})
    [split] = json_lines(folder / "odd.jsonl", kind=kind).splits(1)
    return _Made(split, f"{hint} of {lines}")


def _null(random: Random) -> str:
    return "null"


def _word(random: Random) -> str:
    return f'"{random.choice(_WORDS[:-8])}"'


_KEYS = ("number", "count", "key", "value", "\u00e9", "a b", "")
_ODD_KEYS = ('"num\\u0062er"', '"count "', '"Key"', '"x\\"y"', "number", '"valu"', '"a":1,"value"')
_VALUES: list[tuple[Callable[[Random], str], tuple[Any, ...]]] = [
    (
        lambda random: str(random.choice((random.randrange(100), random.randrange(-(2**63), 2**63)))),
        (int, int, float, int | None),
    ),
    (
        lambda random: repr(random.choice((random.uniform(-9, 9), random.randrange(999) / 10, random.random() * 1e30))),
        (float, float | None),
    ),
    (lambda random: random.choice(("true", "false")), (bool, bool | None)),
    (_word, (str, str, str | None, Any)),
    (_word, (str, str, str | None)),
    (lambda random: random.choice(("null", "1", "-7", "22")), (int | None, int)),
    (lambda random: random.choice(("null", '"a"', '"b"', '"c"')), (str | None, Any)),
    (lambda random: random.choice(('"a"', '"b"', '"c"', '"\\n"', '"\\u00e9"')), (str, str | None)),
    (lambda random: f'{{"a": {random.randrange(9)}, "b": {{"c": "x", "d": {random.randrange(9)}.5}}}}', (Any,)),
    (lambda random: random.choice(('{"a": "b"}', '{"a": "c"}', '{"a": null}')), (Any, dict[str, Any])),
    (lambda random: random.choice(("1", "2.5", "3")), (float, int | float, Any)),
    (lambda random: random.choice(("[1, 2]", "[]")), (list[int], list, Any)),
    (lambda random: '{"a": 1, "b": {"a": 2}}', (dict[str, Any], Any)),
    (lambda random: '"2026-01-31"', (datetime.date, str)),
    (lambda random: random.choice(("2.5", "1.25")), (Decimal, float)),
]
_USUAL = 10
"""The number of kinds of values that may be in columns."""
_ODD_VALUES = (
    *(
        '{"a": null, "b": {"c": "x", "d": 1.5}}',
        '{"a": 1, "b": {"d": 1.5, "c": "x"}}',
        '{"a": 1, "b": {"c": "x", "d": 1.5}, "c": "x"}',
        '{"a": 1, "b": {"c": "x", "d": 1.5, "c": "y"}}',
        '{"a": 1, "b": {"c": "x", "d": 1.5}, "a": 2}',
        '{"a": 1, "b": {"c": "\\u0041", "d": 1}}',
        '{"a": 1, "b": {"c": "x", "d": 1.5}',
        '{"a": 1, "b": {"c": "x", "d": 1.5}}}',
        '{"a": 1, "b": [{"c": "x", "d": 1.5}]}',
        '{"a": 1, "b": null}',
    ),
    *(
        "null",
        "NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "-0",
        "-0.0",
        "0",
        "0.0",
        "-0e0",
        "01",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e5",
        "1E+5",
        "1e400",
    ),
    *(
        "-1e400",
        "1e-400",
        "5e-324",
        "0x1",
        "1_0",
        "9223372036854775808",
        "-9223372036854775809",
        "9" * 400,
        "9" * 641,
        "9" * 4301,
        "1.0",
        "1.5e3",
        "True",
        "nul",
    ),
    *(
        '"5"',
        '""',
        '"a\\"b"',
        '"\\u00e9"',
        '"\\ud800"',
        '"\\n"',
        '"\\x"',
        '"\t"',
        '"\x7f"',
        '"\u00e9"',
        '"{"',
        '"}"',
        '"a, b"',
        '": "',
        "'x'",
        "[]",
        "{}",
    ),
    *(
        "[[1]]",
        '{"number": 1}',
        "-",
        "",
        "1 2",
        '"a" "b"',
        '"a',
        "2.50",
        "true",
        "1}",
        '1, "x": 2',
        "1e",
        "--1",
        "1-2",
        "\u0661",
        '"\x01"',
    ),
)
_DAMAGES = (
    "",
    " ",
    " L",
    "L ",
    "L L",
    "LL",
    "L,",
    "[L]",
    "L}",
    "{L",
    "// L",
    "LE",
    "EL",
    "{}",
    "5",
    '"text"',
    "null",
    "\ufeffL",
    "\tL",
    "L#",
    "{",
    "}",
)
_OTHER_LINES = (
    '{"value": VALUE, "key": "a", "last": 1}',
    '{"key": "a", "last": 1}',
    '{"key": "a", "value":VALUE, "last": 1}',
    '{"key": "a", "value": VALUE,"last": 1}',
    '{"key": "a", "value": VALUE , "last":  1}',
    '{"key": null, "value": NaN, "last": 1}',
    '{"key": "\\n", "value": -1e400, "last": 1}',
)


# ------------------------------------------------------------------------------------------------------------- classes


def _kind(hints: dict[str, tuple[Any, ...]], random: Random) -> tuple[Any, str]:
    """Return a class for rows, or None, and what it is."""
    if random.random() < 0.25:
        return None, "dictionaries"
    fields = {name: random.choice(each) for name, each in hints.items() if name.isidentifier()}
    if random.random() < 0.1 and fields:
        fields[random.choice(list(fields))] = random.choice((int, float, str, Any, int | str, bool))
    if random.random() < 0.3 and fields:
        fields = {name: fields[name] for name in random.sample(list(fields), random.randrange(1, len(fields) + 1))}
    said = ", ".join(f"{name}: {hint}" for name, hint in fields.items())
    chosen = random.choice(
        ("dataclass", "dataclass", "slots", "frozen", "tuple", "dict", "absent", "default", "checked")
    )
    return _CLASSES[chosen](fields), f"{chosen} {said}"


class _Checked:
    """Changes what it was given."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is int:
                setattr(self, name, value + 1)


def _class(fields: dict[str, Any], bases: tuple[type, ...] = (), **options: Any) -> Any:
    return dataclasses.make_dataclass("Made", list(fields.items()), bases=bases, **options)


_CLASSES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dataclass": _class,
    "slots": partial(_class, slots=True),
    "frozen": partial(_class, frozen=True),
    "tuple": lambda fields: NamedTuple("Made", list(fields.items())),
    "dict": lambda fields: typing.TypedDict("Made", fields),
    "absent": lambda fields: typing.TypedDict("Made", {name: NotRequired[hint] for name, hint in fields.items()}),
    "default": lambda fields: dataclasses.make_dataclass(
        "Made", [*fields.items(), ("more", int, dataclasses.field(default=7))]
    ),
    "checked": lambda fields: _class(fields, (_Checked,)),
}
