"""Workers whose Python lacks something: which Python that is, all that is missing, and the line for pip."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

from dstream.engine.spark.port.errors import NEEDED, lacking_on_workers, seen_by_a_task, translated
from dstream.errors import EngineError, SetupError
from dstream.failures import known_of

LACKS = (
    "Job aborted: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    "  File \"worker.py\", line 1, in main\nModuleNotFoundError: No module named '{}'\n"
)
NO_PYTHON = 'java.io.IOException: Cannot run program "python9": error=2, No such file or directory'
TWO = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11"
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


class Session:
    """A session whose one job tells what a worker has seen."""

    def __init__(self, *missing, version="3.9.2"):
        self._seen = json.dumps(["/opt/python", version, "worker-7", list(missing)])

    def range(self, count):
        return SimpleNamespace(select=lambda column: SimpleNamespace(collect=lambda: [(self._seen,)]))


@pytest.fixture
def no_udf(monkeypatch):
    """Spark makes no function, since none runs."""
    monkeypatch.setattr("pyspark.sql.functions.udf", lambda *args, **options: lambda *columns: None)


def test_missing_packages_are_all_named_with_the_line_for_pip(no_udf):
    """With the interpreter, its version and the host; Spark's own text stays at hand."""
    text = LACKS.format("cloudpickle")
    with pytest.raises(SetupError) as caught, translated(Session("cloudpickle", "msgpack")):
        raise Py4JError(text)

    said = str(caught.value)
    assert "Python 3.9.2 (/opt/python on worker-7) lacks cloudpickle, msgpack" in said
    assert "/opt/python -m pip install 'cloudpickle>=3.0,<3.1.3' 'msgpack>=1.1,<2'" in said
    assert "PYSPARK_PYTHON" in said
    assert text in known_of(caught.value).remote_traceback


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NO_PYTHON, "cannot start the Python python9: No such file"),
        (TWO, rf"run Python 3\.9\.2 \(/opt/python on worker-7\), and this process Python {sys.version_info[0]}\."),
    ],
)
def test_another_python_or_none_is_told(no_udf, text, words):
    """Neither is a fault of the job."""
    with pytest.raises(SetupError, match=words), translated(Session()):
        raise Py4JError(text)


def test_missing_packages_are_told_where_no_job_may_look(no_udf):
    """The one that the text names is known at least."""
    assert "lacks pyarrow" in str(lacking_on_workers(LACKS.format("pyarrow"), None))


@pytest.mark.parametrize("text", [LACKS.format("shop"), "java.io.IOException: No space left on device"])
def test_other_failures_stay_what_they_are(no_udf, text):
    """A module of the user's is no package of dstream, and no job looks after a full disk."""
    with pytest.raises(EngineError), translated(Session()):
        raise Py4JError(text)


def test_needed_packages_are_those_of_the_project():
    """In the versions of `pyproject.toml`, or as this Spark needs them; NumPy comes with pandas."""
    wanted = {need.replace(" ", "") for need in PROJECT["dependencies"]}

    assert set(NEEDED.values()) - wanted == {"numpy", "pandas>=2.2,<3", "pyarrow>=18"}


def test_a_job_sees_the_python_of_the_workers(spark_context):
    """Here they have everything."""
    seen = seen_by_a_task(spark_context.spark)

    assert (seen.version, seen.missing) == (sys.version.split()[0], [])
