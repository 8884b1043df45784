"""Lines that were asked for are seen, whether the program logs or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import logging
{}
from dstream.base.logging import is_enabled, log_line
logger = logging.getLogger("dstream.peek.words")
print(is_enabled(logger))
log_line(logger, "100 %s")
"""


@pytest.mark.parametrize(
    ("set_up", "out", "err"),
    [
        ("", "True", "dstream.peek.words: 100 %s\n"),
        ("logging.basicConfig()", "False", ""),
        ("logging.basicConfig(level=logging.INFO)", "True", "INFO:dstream.peek.words:100 %s\n"),
        ("logging.getLogger('dstream').setLevel('ERROR')", "False", ""),
        ("logging.getLogger('dstream').setLevel('INFO')", "True", "dstream.peek.words: 100 %s\n"),
    ],
)
def test_lines_are_logged_or_printed(set_up, out, err):
    """Printed to stderr where nobody has said what to log, and where a level was set without a handler."""
    command = [sys.executable, "-c", RUN.format(set_up)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)

    assert (done.stdout.strip(), done.stderr) == (out, err)
