"""`make quick` runs each test that starts neither Spark nor a program and is not on the list of slow tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.quick import LONG, SlowTests, listed

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


MOSTLY_SLOW = {"differential": "runs random programs"}
"""Rooms of which most tests are slow, and why."""


class Config(SimpleNamespace):
    """Stand-in for the configuration of pytest: the options of the plug-in, and a hook."""

    def __init__(self, *options: str) -> None:
        super().__init__(options=options, hook=SimpleNamespace(pytest_deselected=lambda items: None))

    def getoption(self, name: str) -> bool:
        return name in self.options


CASES = ("test_it.py::test_slow[1]", "test_it.py::test_slow[2]", "test_it.py::test_slower", "test_it.py::test_fast")


def run(config, path):
    """Return the cases that are left of those of the list in `path`."""
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in CASES]
    SlowTests(config, path).pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items]


def test_slow_tests_are_left_out_with_all_of_their_cases(tmp_path):
    """And no other test whose name begins so; a run that renews the list, and one that names no option, leave all."""
    path = tmp_path / "slow.txt"
    path.write_text("test_it.py::test_slow\n")

    assert run(Config("--fast"), path) == list(CASES[2:])
    assert run(Config(), path) == run(Config("--fast", "--renew"), path) == list(CASES)


def measured(running, *found):
    """Report cases that took a time, as it comes from the process that ran them, and end the run."""
    for nodeid, seconds in found:
        properties = [("quick", seconds)]
        running.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, when="call", user_properties=properties))
    running.pytest_sessionfinish()
    return running


def test_a_renewed_list_has_the_tests_that_take_long_on_average(tmp_path):
    """Tests that did not run keep their line; without the option, nothing is written."""
    path = tmp_path / "slow.txt"
    path.write_text("test_it.py::test_fast\ntest_other.py::test_slow\n")
    before = path.read_text()
    found = list(zip(CASES, (LONG / 2, 2 * LONG, 2 * LONG, LONG / 2), strict=True))

    measured(SlowTests(Config("--fast"), path), *found)
    assert path.read_text() == before
    measured(SlowTests(Config("--renew"), path), *found)
    assert path.read_text().split() == ["test_it.py::test_slow", "test_it.py::test_slower", "test_other.py::test_slow"]


def test_slow_tests_that_the_list_lacks_are_reported(tmp_path):
    """The last lines of a run name them."""
    path, lines = tmp_path / "slow.txt", []
    path.write_text("test_it.py::test_slow\n")
    running = measured(SlowTests(Config("--fast"), path), *((nodeid, 9 * LONG) for nodeid in CASES[:3]))
    running.pytest_terminal_summary(SimpleNamespace(write_line=lines.append))

    assert lines == ["slow, and not in tests/slow.txt: test_it.py::test_slower"]


def test_the_list_names_tests_that_exist():
    """A test that was renamed would be run again; `make quick ARGS=--renew` writes the list."""
    lost = [line for line in listed() if not defines(*line.split("::"))]

    assert lost == []


def defines(file, name, *method):
    """Return whether a file defines a test or its class, whose methods may be inherited, or what an example is of."""
    path, of_example = ROOT / file, name.rpartition(".")[2]
    defined = rf"^((async )?def|class) {name}\b|^{name} = " if file.startswith("tests/") else of_example
    return path.is_file() and re.search(defined, path.read_text(), re.MULTILINE) is not None


def test_each_room_has_tests_that_are_not_slow():
    """Most tests of a room are left, so that a wrong result in any of them is seen between edits."""
    slow = [line.split("/")[1] for line in listed() if line.startswith("tests/")]
    for room in sorted({path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}):
        tests = [path.read_text().count("\ndef test_") for path in (ROOT / "tests" / room).rglob("test_*.py")]
        assert slow.count(room) <= sum(tests) / 2 or room in MOSTLY_SLOW, room
