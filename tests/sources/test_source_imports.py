"""What importing the sources costs."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["fsspec", "pyarrow", "pyspark", "numpy", "pandas"])
def test_importing_sources_loads_no_heavy_module(module):
    """Scripts that read no Parquet do not pay for pyarrow."""
    code = f"import sys, sources; sys.exit({module!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_reading_local_text_loads_no_heavy_module(tmp_path):
    """Neither does finding and reading plain files."""
    (tmp_path / "a.txt").write_text("1\n")
    code = (
        "import sys; from sources import text_files\n"
        f"[list(split.read()) for split in text_files({str(tmp_path)!r}).splits(2)]\n"
        "sys.exit('fsspec' in sys.modules or 'pyarrow' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_lines_of_text_load_no_other_format():
    """Neither those that read rows nor what makes items of a `kind`."""
    code = (
        "import sys; from sources import text_files; text_files('a'); print(*sys.modules)\n"
        "from sources import csv_rows, parquet_rows, avro_records, json_lines; print(*sys.modules)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    others = {"dstream.connectors.files.csv", "dstream.connectors.files.parquet", "dstream.connectors.files.avro"}
    for loaded in run.stdout.splitlines():
        assert (others | {"dstream.schema.record_decoders", "dstream.schema.decoders"}).isdisjoint(loaded.split())


def test_memory_and_ranges_import_nothing_else_of_dstream():
    """`dstream` imports them while it loads itself, so they must not need it."""
    code = (
        "import sys, types; sys.modules['dstream'] = types.ModuleType('dstream')\n"
        "sys.modules['dstream'].__path__ = ['dstream']\n"
        "import dstream.connectors.memory; print(*(name for name in sys.modules if 'dstream' in name))"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["dstream", "dstream.connectors", "dstream.connectors.memory"]
