"""`make quick` runs each test that starts neither Spark nor a program, found by the test itself: there is no list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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
    """Run tests with the plug-in in a folder of their own; return what pytest says."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "test_text.py").write_text(textwrap.dedent(TESTS))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.quick", "-v", "test_text.py"]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DSTREAM_"))}
    done = subprocess.run(
        command, cwd=folder, env={**known, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    return done.stdout


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
