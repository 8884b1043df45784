"""Arrays of plain values, which are made without `pyarrow.array`, since that loads pandas."""

from __future__ import annotations

import enum
import subprocess
import sys
from decimal import Decimal

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dstream.operators.columns.strings import numbers_of_array
from dstream.schema import types
from dstream.schema.types import ColumnTypeError, array_of

VALUES = {
    pyarrow.int64(): st.integers(-(2**63), 2**63 - 1),
    pyarrow.float64(): st.floats(allow_nan=False),
    pyarrow.bool_(): st.booleans(),
    pyarrow.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pyarrow.binary(): st.binary(),
}


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(VALUES[kind] | st.none()))))
def test_they_are_those_of_pyarrow(kind_and_values):
    """Nulls and the borders of bytes and bits, too."""
    kind, values = kind_and_values
    found = types._array_of_plain(values, kind)
    found.validate(full=True)

    assert found.equals(pyarrow.array(values, kind))
    assert (found.null_count, found.to_pylist()) == (values.count(None), values)


class Number(enum.IntEnum):
    """Numbers whose class is not int."""

    ONE = 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True], pyarrow.int64()),
        ([1], pyarrow.float64()),
        ([1], pyarrow.bool_()),
        ([1, "a"], pyarrow.int64()),
        ([Number.ONE], pyarrow.int64()),
        ([2**63], pyarrow.int64()),
        (["a"], pyarrow.binary()),
        ([b"a"], pyarrow.string()),
        (["\ud800"], pyarrow.string()),
        ([1], pyarrow.int32()),
        ([Decimal(1)], pyarrow.decimal128(3)),
        (["a"], pyarrow.large_string()),
    ],
)
def test_pyarrow_decides_about_others(values, kind):
    """It converts them, or says what is wrong with them."""
    assert types._array_of_plain(values, kind) is None


def test_an_error_is_that_of_pyarrow(monkeypatch):
    """Also where pandas is not loaded."""
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises(
        ColumnTypeError, match=r"^it has more than 64 bits$|^this is no int64: it has more than 64 bits$"
    ):
        array_of([1, 2**64], pyarrow.int64())
    with pytest.raises(ColumnTypeError, match="surrogates"):
        array_of(["\ud800"], pyarrow.string())


@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool_"]
)
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_numbers_of_columns_are_those_of_pyarrow(kind, chunks):
    """Of a part of an array, whose buffer has more, of chunks, and of none."""
    whole = pyarrow.array([1, 0, 1, 1, 0], pyarrow.int8()).cast(getattr(pyarrow, kind)())
    array = pyarrow.chunked_array([whole[1:4]] * chunks, whole.type) if chunks else whole[1:4]
    for each in (array, array[:0]):
        expected = each.to_numpy() if chunks else each.to_numpy(zero_copy_only=False)
        found = numbers_of_array(each)

        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
        assert found.flags.writeable == expected.flags.writeable or not len(found)


def test_a_buffer_may_end_in_a_part_of_a_number():
    """As one that another library has cut from a larger one."""
    buffer = pyarrow.py_buffer(bytes([1, *[0] * 7, 2, *[0] * 7, 9]))
    array = pyarrow.Array.from_buffers(pyarrow.int64(), 1, [None, buffer], offset=1)
    assert numbers_of_array(array).tolist() == array.to_numpy().tolist() == [2]


_WRITES = """
import operator, sys
import dstream as ds
from reducers import to_imap
with ds.connect() as ctx:
    counts = ctx.stream(["the", "whale", "the"]).collect(to_imap("counts", str, lambda word: 1, operator.add))
    counts["sea"] = 1
    del counts["whale"]
    assert counts.stream().sorted(key=lambda e: (-e.value, e.key)).limit(1).to_list()[0].key == "the"
    print(counts["the"], sorted(entry.key for entry in counts.items()), "pandas" in sys.modules)
"""


def test_a_small_program_loads_no_pandas(tmp_path):
    """It takes longer than all that the program does. The program is in a file, so that its functions are read."""
    program = tmp_path / "program.py"
    program.write_text(_WRITES)
    environment = {"PYTHONPATH": str(types.__file__).removesuffix("dstream/schema/types.py"), "PATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, str(program)], env=environment, cwd=tmp_path, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("2 ['sea', 'the'] False\n", "")


_READS = """
import json, re, sys
import dstream as ds
from collectors import counting, frequencies, grouping_by
from sources import json_lines, text_files
import pyarrow.compute
folder = sys.argv[1]
with ds.connect(storage="memory:") as ctx:
    rows = ctx.read(json_lines(folder + "/rows"))
    found = rows.filter(lambda row: row["ok"]).map(lambda row: row["text"].lower().removeprefix("a") + "!")
    groups = found.collect(grouping_by(lambda text: text, counting()))
    lines = ctx.read(text_files(folder + "/lines"))
    words = lines.filter(lambda line: line.startswith("1") and len(line) > 2).map(lambda line: line.split(",")[0])
    first = words.distinct().sorted(key=lambda word: word.upper()).limit(3).to_list()
    print(len(groups), first, words.collect(frequencies())["100"], "pandas" in sys.modules)
"""


def test_columns_of_texts_load_no_pandas(tmp_path):
    """Neither JSON lines with nulls, bools and floats, nor methods of strings, nor distinct and first items."""
    row = '{{"text": "Ab{}", "ok": {}, "number": {}, "other": {}}}\n'
    lines = (row.format(n % 90, "true" if n % 3 else "false", n / 4, "null" if n % 2 else n) for n in range(20_000))
    (tmp_path / "rows").write_text("".join(lines))
    (tmp_path / "lines").write_text("".join(f"{n % 200},b\n" for n in range(60_000)))
    (tmp_path / "program.py").write_text(_READS)
    environment = {"PYTHONPATH": str(types.__file__).removesuffix("dstream/schema/types.py"), "PATH": str(tmp_path)}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("60 ['1', '10', '100'] 300 False\n", "")
