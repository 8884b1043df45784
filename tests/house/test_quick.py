"""`make quick` runs each test that starts neither Spark nor a program and is not long: there is no list to keep."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.quick import LONG, LongTests

ROOT = Path(__file__).parents[2]
TESTS = """
    import subprocess
    import sys

    import pytest

    import dstream as ds

    def test_plain(): pass

    def test_program(): subprocess.run([sys.executable, "-c", ""])

    @pytest.fixture(scope="module")
    def context():
        with ds.connect("local[1]", engine="spark") as context:
            context.running_engine()
            yield context

    @pytest.fixture(params=["local", "spark"])
    def engine(request):
        return request.param == "spark" and request.getfixturevalue("context")

    @pytest.mark.parametrize("number", range(2))
    def test_engine(engine, number): assert not engine

    def test_spark_of_its_own():
        with ds.connect("local[1]") as ctx:
            ctx.stream([1]).map(str).to_list()
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run tests with the plug-in, in a folder of their own, and return the output."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "test_text.py").write_text(textwrap.dedent(TESTS))
    command = [sys.executable, "-m", "pytest", "--rootdir", folder, "-p", "tests.quick", "-v"]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DSTREAM_"))}
    environment = {**known, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def outcomes(output, outcome):
    """Return the names of the tests that ended so."""
    return re.findall(rf"^test_text.py::(\S+) {outcome}", output, re.MULTILINE)


def test_tests_without_spark_and_programs_run(ran):
    """Also that variant of a test on both engines."""
    assert outcomes(ran, "PASSED") == ["test_plain", "test_engine[local-0]", "test_engine[local-1]"]


def test_tests_that_start_programs_are_skipped(ran):
    """When they do so, in the test or in a fixture of several; Spark is a program, too."""
    found = outcomes(ran, "SKIPPED")

    assert found == ["test_program", "test_engine[spark-0]", "test_engine[spark-1]", "test_spark_of_its_own"]
    assert "failed" not in ran.splitlines()[-1]


class Cache(dict):
    """The cache of pytest, in memory."""

    set = dict.__setitem__


def report(seconds, changed_at):
    """Return the report of a test, as it comes from the process that ran it."""
    return SimpleNamespace(nodeid="test_it", when="call", user_properties=[("quick", [seconds, changed_at])])


def left(config, path):
    """Return what is run of one test."""
    items = [SimpleNamespace(nodeid="test_it", path=path)]
    LongTests(config).pytest_collection_modifyitems(config, items)
    return items


def test_tests_that_took_long_are_left_out_until_their_file_changes(tmp_path):
    """The process that reports remembers them, and no worker does."""
    path, cache, hook = tmp_path / "test_text.py", Cache(), SimpleNamespace(pytest_deselected=lambda items: None)
    path.touch()
    config, worker = SimpleNamespace(cache=cache, hook=hook), SimpleNamespace(cache=cache, hook=hook, workerinput={})
    found = []
    for seconds, each in [(2 * LONG, worker), (LONG / 2, config), (2 * LONG, config)]:
        running = LongTests(each)
        running.pytest_runtest_logreport(report(seconds, path.stat().st_mtime_ns))
        running.pytest_sessionfinish()
        found.append(len(left(config, path)))
    os.utime(path, (1, 1))

    assert [*found, len(left(config, path))] == [1, 1, 0, 1]
