"""Laziness: nothing runs, loads or starts before a terminal operation."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CHAIN = """
ctx = ds.connect("local[2]")
stream = ctx.stream(range(10), 3) + ds.Stream.iterate(0, abs).map(str).limit(5)
for _ in range(50):
    stream = stream.map(str).filter(bool).distinct().sorted().peek(print).skip(1).take_while(bool).parallel(3)
numbers = stream.map_to_int(len).boxed().on_close(print).configure({"a": "b"})
repr(numbers), numbers.is_parallel()
"""

_HEAVY = """
import psutil, sys
print(sorted({"pyspark", "pyarrow", "py4j", "pandas", "numpy", "fsspec"} & sys.modules.keys()))
print(psutil.Process().children(recursive=True))
"""


def python(code: str) -> list[str]:
    """Run `code` in a fresh interpreter and return the lines that it prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("chain", ["", _CHAIN], ids=["import", "chain"])
def test_nothing_heavy_is_loaded_before_a_terminal_operation(chain):
    """Neither `import dstream` nor a long chain loads pyspark or pyarrow, or starts a process."""
    assert python("import dstream as ds\n" + chain + _HEAVY) == ["[]", "[]"]


def test_a_local_pipeline_loads_no_spark():
    """Even a terminal operation loads none of it on the local engine."""
    run = "print(ds.connect(engine='local').stream([2, 1], 2).sorted().distinct().count())"

    assert python("import dstream as ds\n" + run + _HEAVY) == ["2", "[]", "[]"]


_SMALL = """
from reducers import to_ilist, to_imap
with ds.connect(engine="auto", storage="memory:") as ctx:
    stream = ctx.stream(range(1000), 4).map(lambda n: n + 1).cache()
    assert stream.count() == len(stream.collect(to_imap("m", str, abs))) == 1000
    assert ctx.get_map("m").stream().sorted().limit(3).to_list()[0].key == "1"
    assert ctx.stream(["x"]).map(int).on_error(ValueError, into=to_ilist("bad")).find_first().is_empty()
    assert ds.IntStream.range(0, 3096).boxed().join(stream, on=abs).distinct().count() == 1000
    stream.explain("html"), [n for n in stream], repr(ctx)
"""


def test_small_streams_start_no_spark_on_the_automatic_engine():
    """Not while they run, are kept, written, read again or explained, and not when the context closes."""
    # Columns take pyarrow and NumPy where plans run as tasks.
    assert python("import dstream as ds\n" + _SMALL + _HEAVY.replace('"pyarrow", ', "").replace(', "numpy"', "")) == [
        "[]",
        "[]",
    ]


def test_import_is_fast():
    """`import dstream` costs less than half a second of processor time, Python's own start not counted."""
    lines = python("import time; start = time.process_time(); import dstream; print(time.process_time() - start)")

    assert float(lines[0]) < 0.5


def test_building_a_stream_runs_no_function_of_the_users(engine):
    """Sources, predicates, keys and actions wait for the terminal operation."""

    def never(*args):
        raise AssertionError("ran too early")

    stream = engine.stream([1, 2], 2).map(never).filter(never).flat_map(never).sorted(key=never).distinct(key=never)
    stream.take_while(never).drop_while(never).peek(never).map_multi(never).limit(1).skip(1).on_close(never)


def test_a_generator_is_not_touched_before_the_terminal_operation(local_context):
    """A one-shot iterator is pulled when the stream runs, and no further than it must."""
    pulled = []
    items = (pulled.append(n) or n for n in range(1000))
    stream = local_context.stream(items).map(str)
    before = list(pulled)

    assert (before, stream.find_first().get(), len(pulled) <= 64) == ([], "0", True)
