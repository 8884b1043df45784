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


def test_memory_and_ranges_import_nothing_of_dstream():
    """`dstream` imports them while it loads itself, so they must not need it."""
    code = (
        "import sys, types; sys.modules['sources'] = types.ModuleType('sources')\n"
        "sys.modules['sources'].__path__ = ['sources']\n"
        "import sources.generated, sources.memory, sources.ranges; sys.exit('dstream' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
