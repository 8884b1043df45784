"""The samples run as their users run them: as scripts, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "docs" / "samples"

SAID = {
    "employees.py": ["Compilers: 3 people, 9,733 on average", "Engines: Ada", "payroll: 55,400"],
    "log_lines.py": ["6 requests, 1 lines that are no JSON", "2 errors  /cart", "1200 ms      /search"],
    "primes.py": ["1,229 primes up to 10,000", "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]", "the next one is 10007"],
}
"""What each script says about its own data."""


def output_of(sample, *arguments, folder):
    """Run a sample in `folder`, on the local engine if it lets its user choose; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DSTREAM_MASTER": "local[1]"}
    for name in ("DSTREAM_ENGINE", "DSTREAM_STORAGE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, SAMPLES / sample, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("sample", sorted(SAID))
def test_samples_say_what_they_found(sample, tmp_path):
    """Each sample runs without arguments, on its own small data."""
    output = output_of(sample, folder=tmp_path)

    assert [line for line in SAID[sample] if line not in output] == []


def test_samples_log_lines_reads_the_files_that_it_is_given(tmp_path):
    """A glob is for the sample to resolve, not for the shell."""
    (tmp_path / "a.jsonl").write_text('{"path": "/a", "status": 503, "ms": 5}\n')
    (tmp_path / "b.jsonl").write_text('{"path": "/b", "status": 200, "ms": 7}\n')

    assert "2 requests, 0 lines" in output_of("log_lines.py", "*.jsonl", folder=tmp_path)


def test_samples_wordcount_counts_on_spark(tmp_path):
    """The one sample that always runs on Spark counts the words of a file."""
    (tmp_path / "sea.txt").write_text("The whale and the sea.\nThe sea.\n")
    output = output_of("wordcount.py", "sea.txt", folder=tmp_path)

    assert output.split()[:4] == ["3", "the", "2", "sea"]
    assert "7 words, 4 of them different" in output

    looked_up = output_of("look_up.py", "whale", "ship", folder=tmp_path)
    assert "opens the map 'counts': 4 words" in looked_up
    assert [line.split()[:2] for line in looked_up.splitlines()[-2:]] == [["1", "whale"], ["0", "ship"]]


def test_samples_each_have_a_line_in_the_readme():
    """A script that is added is described, and none is described that is gone."""
    described = {
        line.split("`")[1].split()[0]
        for line in (SAMPLES / "README.md").read_text().splitlines()
        if "py" in line and line.startswith("| `")
    }

    assert described == {path.name for path in SAMPLES.glob("*.py")}
