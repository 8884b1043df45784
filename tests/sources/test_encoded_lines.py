"""Lines that come as bytes are those that `open` gives, and become columns of texts."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dstream.connectors.files.lines
import dstream.connectors.files.text
from collectors import counting, frequencies
from dstream.base.memory import Bound
from dstream.collectors.entries import folded_values
from dstream.connectors.collections.sinks import entries
from dstream.engine.compiler.evaluation import collector_read, read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import EngineError, SourceError
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import Column, column_of, items_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected, tables_of_groups
from dstream.operators.rows.guards import items_of as read_items
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step
from dstream.values.bad_records import EncodedLines
from sources import text_files

_STEP = Step("read", None, 1, 1)

FILES = {
    "unix": b"one\ntwo\n\nthree\n",
    "no end": b"one\ntwo",
    "windows": b"one\r\n\r\ntwo\r\nthree",
    "old mac": b"one\rtwo\r\rthree\r",
    "mixed": b"a\r\r\nb\n\rc\r",
    "empty": b"",
    "one end": b"\n",
    "mark": "\ufeffone\n\ufefftwo\n".encode(),
    "mark alone": "\ufeff".encode(),
    "mark and end": "\ufeff\r\n".encode(),
    "beyond ASCII": "é\u2028\x85\x0b\x1c\nß日本\r\n🐳".encode(),
    "zeros": b"a\0b\n\0\n",
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dstream.connectors.files.lines, "BLOCK", 5)
    monkeypatch.setattr(dstream.connectors.files.text, "FEW_BYTES", 0)


def _blocks(path: Path, encoding: str = "utf-8") -> Iterator[Sequence[str]]:
    for split in text_files(path, encoding=encoding).splits(1):
        yield from split.read_blocks()  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("name", FILES)
def test_lines_are_those_of_open_and_so_are_columns(tmp_path: Path, name: str, encoding: str) -> None:
    """With every kind of line end, wherever a block ends."""
    path = tmp_path / "lines.txt"
    path.write_bytes(FILES[name])
    with path.open(encoding="utf-8-sig") as lines:
        expected = [line.removesuffix("\n") for line in lines]
    blocks = list(_blocks(path, encoding))

    assert [line for block in blocks for line in block] == expected
    assert [text for block in blocks for text in items_of(column_of(block))] == expected
    assert all(isinstance(block, EncodedLines) for block in blocks)


@pytest.mark.parametrize("name", FILES)
def test_blocks_know_whether_they_are_ascii(tmp_path: Path, name: str) -> None:
    """Each of them alone, and how many lines they have."""
    path = tmp_path / "lines.txt"
    path.write_bytes(FILES[name])

    for block in _blocks(path):
        assert isinstance(block, EncodedLines)
        assert block.is_ascii == "".join(block).isascii()
        assert len(block) == len(list(block)) == len(EncodedLines(block.data, is_ascii=block.is_ascii))


@pytest.mark.parametrize(
    ("encoding", "data"), [("latin-1", b"\xe9\nab\r\n"), ("cp1252", b"\x80\nab"), ("ascii", b"ab")]
)
def test_other_encodings_are_decoded(tmp_path: Path, encoding: str, data: bytes) -> None:
    """What is ASCII in them is that."""
    path = tmp_path / "lines.txt"
    path.write_bytes(data)

    assert [line for block in _blocks(path, encoding) for line in block] == data.decode(encoding).splitlines()


def test_bytes_that_only_look_like_ascii_are_decoded(tmp_path: Path) -> None:
    """In UTF-7 a plus begins something else."""
    path = tmp_path / "lines.txt"
    path.write_bytes("aé\nb".encode("utf-7"))

    assert [line for block in _blocks(path, "utf-7") for line in block] == ["aé", "b"]


def test_lines_before_what_is_not_in_the_encoding_are_given_first(tmp_path: Path) -> None:
    """The error has the number of the line, and its place, also in a later block."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\nthree\nfo\xffur\nfive\n")
    given: list[str] = []

    with pytest.raises(SourceError, match=r"line 4, byte 16: b'\\xff' is not utf-8"):
        given.extend(line for block in _blocks(path) for line in block)
    assert given == ["one", "two", "three"]


def test_few_bytes_make_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files of a task together count."""
    monkeypatch.setattr(dstream.connectors.files.text, "FEW_BYTES", 7)
    (tmp_path / "a").write_bytes(b"one\n")
    few = list(_blocks(tmp_path))
    (tmp_path / "b").write_bytes(b"two\n")

    assert [block.are_few for block in few if isinstance(block, EncodedLines)] == [True]
    assert [block.are_few for block in _blocks(tmp_path) if isinstance(block, EncodedLines)] == [False, False]


def _op(action: str, fn: Any, *, is_verified: bool = False) -> Op:
    op = read_op(Op(action, fn, None, _STEP), is_verified=is_verified).op
    assert op.evaluation.expression is not None, "these tests are about functions that are read"
    return op


def _items(path: Path, *ops: Op) -> Iterator[Any]:
    chain = Chain(Limit(None, 0, step=_STEP), ops, step=_STEP)  # type: ignore[arg-type]
    (split,) = text_files(path).splits(1)
    return operation(chain)(read_items(split, _STEP), StageTask(0, 2**40))


def _columns(items: Iterator[Any]) -> list[Column]:
    assert isinstance(items, ColumnItems)
    return [block for block in items.blocks() if not isinstance(block, Sequence | Iterator)]


def test_a_chain_on_a_file_stays_in_columns(tmp_path: Path) -> None:
    """Words of lines, and those of words that begin with a letter."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"the Whale\nthe sea\n\n")
    steps = (_op("map", str.lower), _op("flat_map", str.split), _op("filter", lambda word: word >= "t"))

    blocks = _columns(_items(path, *steps))

    assert all(isinstance(block, Strings) for block in blocks)
    assert [word for block in blocks for word in items_of(block)] == ["the", "whale", "the"]


def test_blocks_beyond_ascii_are_columns_like_others(tmp_path: Path) -> None:
    """The order of items stays; Python is asked what becomes of each character."""
    path = tmp_path / "lines.txt"
    path.write_text("Aaaa\nÉé\nBbbb\n", encoding="utf-8")

    found = _items(path, _op("map", str.lower))

    assert list(found) == ["aaaa", "éé", "bbbb"]
    assert len(_columns(_items(path, _op("map", str.lower)))) == 3


def test_collectors_count_lines_without_making_them(tmp_path: Path) -> None:
    """As many as there are, and how often each comes."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\none\n")

    for collector, expected in ((counting(), 3), (frequencies(), {"one": 2, "two": 1})):
        known: Any = collector_read(collector, is_verified=True)[0]  # type: ignore[arg-type]
        (split,) = text_files(path).splits(1)
        found = collected(known, read_items(split, _STEP))
        assert known.finisher(found) == expected


def test_verify_finds_a_flat_map_that_gives_something_else(tmp_path: Path) -> None:
    """The error names the step, both lists and the line."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a b\n")
    right = _op("flat_map", str.split)
    wrong = replace(right, fn=lambda line: line.split("b"), evaluation=replace(right.evaluation, is_verified=True))

    with pytest.raises(EngineError, match=r"columns give \['a', 'b'\] where Python gives \['a ', ''\] for 'a b'"):
        list(_items(path, wrong))
    assert list(_items(path, _op("flat_map", str.split, is_verified=True))) == ["a", "b"]


def test_a_flat_map_to_numbers_and_one_of_other_lists_take_items(tmp_path: Path) -> None:
    """What a flat_map gives has to be a list of texts."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"1 2\n3\n")
    numbers = read_op(Op("flat_map", lambda line: line.split(), int, _STEP)).op

    with pytest.raises(TypeError, match="an int is needed"):
        list(_items(path, numbers))
    assert list(_items(path, _op("flat_map", lambda line: (line, line)))) == ["1 2", "1 2", "3", "3"]


@pytest.mark.parametrize("fold", [entries(None, None, operator.add), folded_values(operator.add)])
def test_words_that_are_no_pairs_are_refused_as_items_are(tmp_path: Path, fold: Any) -> None:
    """Counting pairs by their first parts takes no words."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a b\n")

    with pytest.raises(TypeError):
        collected(collector_read(fold, is_verified=False)[0], _items(path, _op("flat_map", str.split)))


@pytest.mark.parametrize("fold", [entries(None, None, operator.add), folded_values(operator.add)])
def test_pairs_of_words_and_ones_are_counted_in_columns(tmp_path: Path, fold: Any) -> None:
    """With their counts and sums; True is left to Python."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a b\na c\n")
    words = _op("flat_map", str.split)

    ones = _items(path, words, _op("map", lambda word: (word, 1)))
    truths = _items(path, words, _op("map", lambda word: (word, True)))

    read_as, _ = collector_read(fold, is_verified=False)
    counted = collected(read_as, truths)
    assert counted == {"a": 2, "b": True, "c": True}
    assert type(counted["b"]) is bool
    tables = tables_of_groups(read_as, ones, Bound())
    assert tables is not None
    assert [list(table.lines()) for table in tables] == [[("a", 2, 2), ("b", 1, 1), ("c", 1, 1)]]  # type: ignore[union-attr]
