"""A process that was forked while Spark runs here."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
import dstream as ds
from dstream import IntStream

with ds.connect("local[1]") as ctx:
    assert IntStream.range(0, 10).map_to_obj(str).count() == 10
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(IntStream.range(0, 20).map_to_obj(str).count())
"""


def test_a_forked_process_ends_without_touching_spark(tmp_path):
    """It leaves the context, and ends, as any other; the parent's Spark and its sockets are as before."""
    script = tmp_path / "forking.py"
    script.write_text(SCRIPT)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)

    assert (ran.stdout, ran.stderr, ran.returncode) == ("20\n", "", 0)
