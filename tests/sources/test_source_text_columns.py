"""CSV and JSON lines in columns: when they are, and results and failures that are those of their readers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from collectors import summing
from dstream.connectors.files import csv, json_columns, lines
from dstream.connectors.files import json_lines as json_reader
from dstream.connectors.files.csv_columns import CsvColumns
from dstream.connectors.files.json_columns import JsonColumns
from dstream.errors import SourceError
from dstream.spi import ArrowRows
from sources import csv_rows, json_lines


@dataclass
class Sale:
    """A row."""

    shop: int
    price: float
    name: str


_LINES = [f"{n},{n / 4},item {n}" for n in range(1000)]


@pytest.fixture(autouse=True)
def _columns_of_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv.CsvReader, "fewest_bytes", 1)
    monkeypatch.setattr(json_reader.JsonReader, "fewest_bytes", 1)
    monkeypatch.setattr(JsonColumns, "fewest_lines", 10)
    monkeypatch.setattr(CsvColumns, "fewest_lines", 10)
    monkeypatch.setattr(CsvColumns, "fewest_bytes", 1)


def _csv(folder: Path, lines: list[str]) -> Path:
    path = folder / "sales.csv"
    path.write_text("\n".join(["shop,price,name", *lines, ""]), encoding="utf-8")
    return path


def _json(folder: Path, lines: list[Any]) -> Path:
    path = folder / "sales.jsonl"
    path.write_text("\n".join([*map(json.dumps, lines), ""]), encoding="utf-8")
    return path


def _rows_in_columns(source: Any) -> int:
    return sum(
        each.size if isinstance(each, ArrowRows) else 0 * sum(1 for _ in each)
        for split in source.splits(1)
        for each in split.arrow_rows() or ()
    )


def test_rows_behind_the_first_ones_of_a_csv_file_are_in_columns(tmp_path: Path) -> None:
    """The first rows show the dialect; the others become columns."""
    assert _rows_in_columns(csv_rows(_csv(tmp_path, _LINES), Sale)) == 1000 - csv.ROWS


@pytest.mark.parametrize("row", ['1,2,a"b', '1,2,x"a"', '1,2,"a\nb"'])
def test_rows_of_a_block_with_a_quote_in_a_field_are_made_one_by_one(tmp_path: Path, row: str) -> None:
    """Arrow takes a quote for the start of a string that `csv` takes for text; a string may have several lines."""
    assert _rows_in_columns(csv_rows(_csv(tmp_path, [*_LINES, row]), Sale)) == 0


@dataclass
class Names:
    """A row of two strings."""

    first: str
    last: str | None


@pytest.mark.parametrize("kind", [None, Names])
@pytest.mark.parametrize("row", ['"c",', '"",'])
def test_an_empty_field_at_the_end_of_a_file_has_no_quotes(tmp_path: Path, kind: type | None, row: str) -> None:
    """Without a line break behind it, Arrow gives it the quotes of the field before (pyarrow 26)."""
    path = tmp_path / "names.csv"
    path.write_text("\n".join(["first,last", *["a,b"] * 1000, row]))
    [split] = csv_rows(path, kind=kind).splits(1)

    assert _items(split) == list(split.read())
    assert _rows_in_columns(csv_rows(path, kind=kind)) == 1001 - csv.ROWS


def test_json_lines_of_one_layout_are_in_columns(tmp_path: Path) -> None:
    """All lines have the keys of the first one, in its order."""
    lines = [{"shop": n, "price": n / 4, "name": f"item {n}"} for n in range(1000)]

    assert _rows_in_columns(json_lines(_json(tmp_path, lines))) == 1000
    assert _rows_in_columns(json_lines(_json(tmp_path, lines), kind=Sale)) == 1000
    assert _rows_in_columns(json_lines(_json(tmp_path, [*lines, {"price": 1.5, "shop": 1, "name": ""}]))) == 0
    assert _rows_in_columns(json_lines(_json(tmp_path, [*lines, {"shop": 1, "price": 1, "name": ""}]))) == 0


@dataclass
class Named:
    """A line whose name may be absent."""

    shop: int
    price: float
    name: str | None


def test_a_line_with_an_escape_or_a_null_is_parsed_alone(tmp_path: Path) -> None:
    """Up to one in eight lines of a block is, and stays at its place."""
    odd = [None, 'a "quoted" name', "a\nb", "\u00e9"]
    lines = [{"shop": n, "price": n / 4, "name": odd[n % 36 // 9] if n % 9 == 0 else f"item {n}"} for n in range(1000)]
    mostly = [{**line, "name": None if n % 9 else "x"} for n, line in enumerate(lines)]

    for some in (lines, mostly):
        for kind in (None, Named):
            source = json_lines(_json(tmp_path, some), kind=kind)
            assert _rows_in_columns(source) == 1000
            assert _items(source.splits(1)[0]) == list(source.splits(1)[0].read())
    assert _rows_in_columns(json_lines(_json(tmp_path, [{"a": "x" if n % 7 else "\n"} for n in range(1000)]))) == 0
    mixed = [{"a": "\n" if n % 10 == 0 else "x", "b": 1 if n % 20 == 0 else n / 4} for n in range(1000)]
    source = json_lines(_json(tmp_path, mixed))
    assert list(map(repr, _items(source.splits(1)[0]))) == list(map(repr, mixed))


@pytest.mark.parametrize("odd", ["null", r'"a \"quoted\" name"', ' "usual"'])
def test_lines_of_many_quotes_may_have_fewer_others(tmp_path: Path, odd: str) -> None:
    """At most one in as many as a line has quotes: to divide these takes longer, and `json` no longer for its text."""

    def rows(every: int) -> int:
        path, values = tmp_path / "some.jsonl", "".join(f',"value {number}":{number}' for number in range(11))
        names = (odd if n % every == 1 else '"usual"' for n in range(1300))
        path.write_text("".join(f'{{"name":{name}{values}}}\n' for name in names), "utf-8")
        return _rows_in_columns(json_lines(path))

    assert [rows(26), rows(25)] == [1300, 0]


def test_many_others_among_the_first_lines_are_seen_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at all lines of a block that is no column costs a part of what it takes to parse them."""
    sizes, counts = list[int](), json_columns._Lines._counts
    monkeypatch.setattr(json_columns._Lines, "_counts", lambda self, are: sizes.append(len(are)) or counts(self, are))
    names = ["\n" if n % 2 else "usual" for n in range(5000)]

    assert _rows_in_columns(json_lines(_json(tmp_path, [{"id": n, "name": name} for n, name in enumerate(names)]))) == 0
    assert 60_000 < max(sizes) < 70_000
    few = [{"id": n, "name": name if n % 20 == 1 else "usual"} for n, name in enumerate(names)]
    assert _rows_in_columns(json_lines(_json(tmp_path, few))) == 5000


def test_objects_in_lines_are_columns_of_their_own(tmp_path: Path) -> None:
    """A step that takes a value out of one makes no dictionary of it."""
    lines = [{"id": n, "user": {"name": f"user {n % 9}", "at": {"x": n / 4, "y": None}}} for n in range(5000)]
    path = _json(tmp_path, lines)
    with ds.connect(engine="auto") as ctx:
        read = ctx.read(json_lines(path))
        whole, inner = read.map(lambda row: row["user"]).to_list(), read.map(lambda row: row["user"]["at"]["x"] * 2)
        pairs = read.map(lambda row: (row["user"], row)).to_list()

        assert _rows_in_columns(json_lines(path)) == 5000
        assert inner.to_list() == [n / 2 for n in range(5000)]
        assert whole == [line["user"] for line in lines]
        assert all(user is row["user"] for user, row in pairs)


def test_sums_of_fields_are_those_of_the_local_engine(tmp_path: Path) -> None:
    """The engine that runs in this process evaluates the functions in columns."""
    path = _csv(tmp_path, _LINES)
    found = []
    for engine in ("local", "auto"):
        with ds.connect(engine=engine) as ctx:
            dear = ctx.read(csv_rows(path, Sale)).filter(lambda sale: sale.price > 10)
            found.append(dear.map(lambda sale: sale.shop * 2).collect(summing()))

    assert found[0] == found[1] == sum(2 * n for n in range(1000) if n / 4 > 10)


def test_a_bad_row_has_its_line_and_text(tmp_path: Path) -> None:
    """The block of a bad row is read row by row, so that the error is that of the reader."""
    path = _csv(tmp_path, [*_LINES, "7,4 EUR,cake"])
    with ds.connect(engine="auto") as ctx, pytest.raises(SourceError, match=r"line 1,002: column price: .*'4 EUR'"):
        ctx.read(csv_rows(path, Sale)).map(lambda sale: sale.shop * 2).collect(summing())


def test_a_line_in_another_encoding_behind_the_first_rows_is_refused(tmp_path: Path) -> None:
    """Its bad bytes are shown in its text, which columns would take for what the file has."""
    path = _csv(tmp_path, _LINES)
    path.write_bytes(path.read_bytes().replace(b"item 500\n", b"item \xe9\n"))
    [split] = csv_rows(path, Sale).splits(1)

    with pytest.raises(SourceError, match=r"line 502\b.*utf-8"):
        _items(split)


def test_a_block_behind_one_that_is_no_columns_is_one_from_its_first_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are made together end with a block."""
    rows = [f"{n:04},1.5,item {n:05}" for n in range(401)]
    rows[199] = '0199,1.5,it"m 00199'
    path = _csv(tmp_path, rows)
    monkeypatch.setattr(lines, "BLOCK", path.read_bytes().index(b"0200,"))
    monkeypatch.setattr(lines, "_TEXT_BLOCK", 1)

    assert _rows_in_columns(csv_rows(path, Sale)) == 201


def test_explain_says_when_rows_are_in_columns(tmp_path: Path) -> None:
    """The condition is that of the source."""
    with ds.connect(engine="auto") as ctx:
        plan = ctx.read(csv_rows(_csv(tmp_path, _LINES), Sale)).map(lambda sale: sale.shop * 2).explain("dot")

    assert "columns if a task reads" in plan


def test_items_with_code_of_their_own_are_not_in_columns(tmp_path: Path) -> None:
    """A class may change what it is given."""

    @dataclass
    class Doubled(Sale):
        def __post_init__(self) -> None:
            self.shop *= 2

    assert _rows_in_columns(csv_rows(_csv(tmp_path, _LINES), Doubled)) == 0


def test_an_int_that_python_does_not_parse_is_refused_under_any_key(tmp_path: Path) -> None:
    """A key that the class does not have is parsed, too."""
    path = _json(tmp_path, [{"shop": n, "price": 1.5, "name": "", "more": 1} for n in range(100)])
    path.write_text(path.read_text().replace('"more": 1', f'"more": {"1" * 5000}'))
    [split] = json_lines(path, kind=Sale).splits(1)

    with pytest.raises(SourceError, match="Exceeds the limit"):
        _items(split)


def test_a_key_that_stands_twice_has_its_last_value_and_the_first_one_is_read(tmp_path: Path) -> None:
    """A column has the values of one place alone, and nothing would look at those of the other one."""
    path, lines = tmp_path / "a.jsonl", ['{"shop": 1, "shop": 2}\n'] * 500
    path.write_text("".join(lines))

    assert _items(json_lines(path).splits(1)[0]) == [{"shop": 2}] * 500

    path.write_text("".join([*lines, '{"shop": 01, "shop": 2}\n', *lines]))
    with pytest.raises(SourceError, match="line 501"):
        _items(json_lines(path).splits(1)[0])


@pytest.mark.parametrize(
    "odd", ['{"a":12, "b": 34}', '{"a": 12,"b": 34}', '{"a":  12, "b": 34}', '{"a": 12, "b":34}', '{"a": 12, "b": 34 }']
)
def test_a_line_with_other_blanks_has_its_own_values(tmp_path: Path, odd: str) -> None:
    """The bytes around a token are removed in all lines alike, which would take a digit of it."""
    lines = ['{"a": 1, "b": 2}'] * 500
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, odd, *lines, ""]))

    assert _items(json_lines(tmp_path / "a.jsonl").splits(1)[0])[500] == {"a": 12, "b": 34}


def test_keys_of_an_inner_object_have_the_order_of_their_line(tmp_path: Path) -> None:
    """Dictionaries show it, also where few lines have another one."""
    lines = ['{"a": {"b": 1, "c": 2}}'] * 500
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"a": {"c": 3, "b": 4}}', *lines, ""]))

    assert str(_items(json_lines(tmp_path / "a.jsonl").splits(1)[0])[500]) == "{'a': {'c': 3, 'b': 4}}"


def test_a_byte_order_mark_inside_a_file_is_refused(tmp_path: Path) -> None:
    """The parser of bytes would leave it out."""
    lines = ['{"a": 1}'] * 500
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '\ufeff{"a": 2}', *lines, ""]), encoding="utf-8")

    with pytest.raises(SourceError, match="line 501"):
        _items(json_lines(tmp_path / "a.jsonl").splits(1)[0])


def test_keys_that_are_the_same_one_behind_the_other_are_not_the_same(tmp_path: Path) -> None:
    """Texts are compared with their bounds."""
    lines = ['{"aa": 1}'] * 500 + ['{"a": 2}', '{"aaa": 3}']
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, ""]))

    assert _items(json_lines(tmp_path / "a.jsonl").splits(1)[0])[-3:] == [{"aa": 1}, {"a": 2}, {"aaa": 3}]


def test_a_line_behind_empty_ones_has_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow leaves out empty lines, and the numbers of lines behind a block in columns are those of its rows."""
    first = [*['{"a": 1}'] * 25, "", *['{"a": 1}'] * 25]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*first, '{"a": 1', *['{"a": 1}'] * 50, ""]))
    monkeypatch.setattr(lines, "BLOCK", path.read_bytes().index(b"1\n") - 6)
    monkeypatch.setattr(lines, "_TEXT_BLOCK", 1)

    with pytest.raises(SourceError, match=r"line 52\b"):
        _items(json_lines(path).splits(1)[0])


def test_rows_before_the_error_of_a_file_come_first(tmp_path: Path) -> None:
    """Lines of a torn gzip file are read up to its end, as row by row."""
    data = gzip.compress("".join(f'{{"n": {n}, "name": "{n * 7919 % 10007}"}}\n' for n in range(60_000)).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(data[: len(data) * 3 // 4])
    [split] = json_lines(tmp_path / "a.jsonl.gz").splits(1)
    found: dict[str, list[Any]] = {"rows": [], "columns": []}
    for name, items in (("rows", split.read()), ("columns", _each_item(split))):
        with pytest.raises(SourceError):
            found[name].extend(items)

    assert len(found["rows"]) > 30_000
    assert found["columns"] == found["rows"]


def test_a_delimiter_is_seen_in_first_rows_of_several_blocks(tmp_path: Path) -> None:
    """The first rows are the same ones whatever their size is."""
    wide = "x" * 6000
    rows = [*(f"{n}{wide}" for n in range(60)), *(f"{n};{wide}" for n in range(90))]
    (tmp_path / "a.csv").write_text("\n".join(["a;b", *rows, ""]))
    [split] = csv_rows(tmp_path / "a.csv").splits(1)

    with pytest.raises(SourceError, match="delimiter=';' reads 2 columns"):
        _items(split)


def test_blocks_with_few_lines_are_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's calls take as long for a few rows as for many."""
    monkeypatch.undo()
    monkeypatch.setattr(csv.CsvReader, "fewest_bytes", 1)
    monkeypatch.setattr(json_reader.JsonReader, "fewest_bytes", 1)
    few, many = ([{"shop": n, "price": 1.5, "name": ""} for n in range(count)] for count in (1900, 2100))

    assert _rows_in_columns(csv_rows(_csv(tmp_path, _LINES[:600]))) == 0
    assert _rows_in_columns(csv_rows(_csv(tmp_path, _LINES * 3))) == 3000 - csv.ROWS
    assert _rows_in_columns(json_lines(_json(tmp_path, few))) == 0
    assert _rows_in_columns(json_lines(_json(tmp_path, many))) == 2100
    assert _rows_in_columns(json_lines(_json(tmp_path, [{f"key {n}": n for n in range(17)}] * 2100))) == 0


@dataclass
class Note:
    """A row of what may be absent."""

    at: datetime | None
    total: Decimal | None


@dataclass
class Found:
    """A line of what may be absent."""

    count: int | None
    price: float | None
    is_new: bool | None
    name: str | None


def test_columns_without_any_value_are_in_columns(tmp_path: Path) -> None:
    """Of no values all are some."""
    (tmp_path / "a.csv").write_text("at,total,key\n" + ",,1\n" * 500)
    lines = [{"count": None, "price": None, "is_new": None, "name": None}] * 500

    assert _rows_in_columns(csv_rows(tmp_path / "a.csv", Note)) == 500 - csv.ROWS
    for kind in (Found, None):
        source = json_lines(_json(tmp_path, lines), kind=kind)
        assert _rows_in_columns(source) == 500
        assert _items(source.splits(1)[0]) == list(source.splits(1)[0].read())


def _items(split: Any) -> list[Any]:
    return list(_each_item(split))


def _each_item(split: Any) -> Iterator[Any]:
    for each in split.arrow_rows():
        yield from each.items(slice(0, each.size)) if isinstance(each, ArrowRows) else each


@pytest.mark.parametrize("levels", [2, 40, 320])
def test_deeply_nested_objects_are_read_row_by_row(tmp_path: Path, levels: int) -> None:
    """Whatever the limit of recursion is."""
    path = tmp_path / "deep.jsonl"
    path.write_text(('{"a": ' * levels + "1" + "}" * levels + "\n") * 60)
    [split] = json_lines(path).splits(1)

    assert _items(split) == list(split.read())
    assert _rows_in_columns(json_lines(path)) == (60 if levels == 2 else 0)
