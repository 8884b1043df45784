"""What is done at once for small files: how much their rows take, and their checksums."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dstream.storage.lake.checksums import _BLOCK, BlockSums, sums_of
from dstream.storage.lake.lake_tables import takes_more


def test_a_part_of_many_rows_takes_its_own_share():
    """Not what the buffers hold that it shares with the others."""
    whole = pa.RecordBatch.from_arrays([pa.array(range(1000), pa.int64())], names=["n"])

    assert (takes_more(whole, 7999), takes_more(whole, 8000)) == (True, False)
    assert (takes_more(whole[10:12], 15), takes_more(whole[10:12], 16)) == (True, False)


@pytest.mark.parametrize("size", [0, 1, 1000, _BLOCK - 1, _BLOCK, _BLOCK + 1, 2 * _BLOCK])
def test_small_files_have_the_same_checksums(size):
    """They are made at once, and checked as those of larger ones are."""
    data = bytes(range(256)) * (size // 256 + 1)
    sums = BlockSums()
    sums.add(data[:size])

    assert sums_of(data[:size]) == sums_of(pa.py_buffer(data[:size])) == sums.text()
