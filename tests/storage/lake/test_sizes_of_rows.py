"""How much rows take, which decides how they are written and whether they are kept at hand."""

from __future__ import annotations

import pyarrow as pa

from dstream.storage.lake.lake_tables import takes_more


def test_a_part_of_many_rows_takes_its_own_share():
    """Not what the buffers hold that it shares with the others."""
    whole = pa.RecordBatch.from_arrays([pa.array(range(1000), pa.int64())], names=["n"])

    assert (takes_more(whole, 7999), takes_more(whole, 8000)) == (True, False)
    assert (takes_more(whole[10:12], 15), takes_more(whole[10:12], 16)) == (True, False)
