"""Values of NumPy are stored as plain data, also where pickles are restricted."""

from __future__ import annotations

import subprocess
import sys

import msgpack
import numpy as np
import pytest

import dstream as ds
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.plain_classes import from_parts
from dstream.storage.codec.values import ValueEncoding

PLAIN = {
    "int": np.int64(-3),
    "small int": np.uint8(255),
    "float": np.float64(1.5),
    "half": np.float16(1.5),
    "truth": np.bool_(True),
    "complex": np.complex64(1 + 2j),
    "text": np.str_("a\0\ud800\0"),
    "bytes": np.bytes_(b"a\0"),
    "moment": np.datetime64("2026-01-02T03:04:05", "ns"),
    "no moment": np.datetime64("NaT", "s"),
    "duration": np.timedelta64(3, "D"),
    "array": np.arange(3),
    "other byte order": np.arange(3, dtype=">i4"),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every second": np.arange(10)[::2],
    "no axis": np.array(3),
    "empty": np.empty((0, 3), np.float32),
    "texts": np.array(["a", "bb"]),
    "moments": np.array(["2026-01-02", "NaT"], "M8[D]"),
}
REFUSED = {
    "objects": np.array([1, "a"], object),
    "fields": np.array([(1, 2.0)], [("n", "i4"), ("x", "f8")]),
    "masked": np.ma.array([1, 2], mask=[0, 1]),
}


def same(found, value):
    """Say whether a value came back as it was, with its dtype and order."""
    is_fortran = [np.asarray(each).flags.f_contiguous for each in (found, value)]
    is_alike = (type(found), found.dtype, repr(found)) == (type(value), value.dtype, repr(value))
    return is_alike and is_fortran[0] >= is_fortran[1]


@pytest.mark.parametrize("mode", ["restricted", "never", "trusted"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_value_comes_back_in_every_mode(mode, name):
    """Alone and inside of others, with nothing allowed; an array may be written again."""
    values, value = ValueEncoding(Pickles(mode)), PLAIN[name]
    alone, (inside,) = (values.decode(values.encode(each)) for each in (value, [value]))

    assert same(alone, value)
    assert same(inside, value)
    assert not isinstance(alone, np.ndarray) or (alone.flags.writeable and alone.flags.owndata)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_data_is_refused_in_words(name):
    """Where pickles are trusted it comes back."""
    value, trusted = REFUSED[name], ValueEncoding(Pickles("trusted"))
    with pytest.raises(TypeError, match=r"of NumPy with the dtype .*'restricted'.* store tolist\(\) of it"):
        ValueEncoding(Pickles()).encode([value])

    assert repr(trusted.decode(trusted.encode(value))) == repr(value)


def test_an_array_in_a_value_that_is_pickled_comes_back():
    """What is nested too deep for other forms is pickled as a whole."""
    values, deep = ValueEncoding(Pickles()), np.arange(3)
    for _ in range(100):
        deep = (deep,)
    found = values.decode(values.encode(deep))
    while isinstance(found, tuple):
        (found,) = found

    assert same(found, np.arange(3))


@pytest.mark.parametrize(
    "parts",
    [
        (False, "|O", [1], "C", bytes(8)),
        (False, "<i8", [2], "C", bytes(8)),
        (False, "<i8", [-1], "C", b""),
        (False, "<i8", 1, "C", bytes(8)),
        (False, "i4,i4", [1], "C", bytes(8)),
        (False, "<i8", [1], "A", bytes(8)),
        (True, "U", [], "C", b"a"),
        (1, "<i8", [1], "C", "12345678"),
    ],
)
def test_other_parts_make_no_array(parts):
    """Whoever writes the storage chooses numbers, and nothing else."""
    with pytest.raises(ValueError, match="NumPy"):
        from_parts(*parts)
    with pytest.raises(ValueError, match="NumPy"):
        ValueEncoding(Pickles()).decode(msgpack.packb(msgpack.ExtType(22, msgpack.packb(parts))))


def test_a_restricted_map_and_list_take_arrays(tmp_path):
    """In a lake, and read again by another handle."""
    with ds.connect(engine="local", storage=tmp_path, pickle="restricted") as ctx:
        ctx.get_map("arrays")["a"] = np.arange(3)
        ctx.get_list("arrays").append({"mean": np.float64(0.5)})
    with ds.connect(engine="local", storage=tmp_path, pickle="restricted") as ctx:
        assert same(ctx.get_map("arrays")["a"], np.arange(3))
        assert same(ctx.get_list("arrays")[0]["mean"], np.float64(0.5))


def test_other_values_load_no_numpy():
    """It takes longer to import than a small job."""
    script = """
import sys
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.values import ValueEncoding
values = ValueEncoding(Pickles())
print(values.decode(values.encode((1, {2}))), "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "(1, {2}) False\n"
