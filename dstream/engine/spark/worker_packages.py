"""Packages that the Python of Spark's workers lacks: found out by a small job, after one has failed."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, NamedTuple

from dstream.engine.worker.spark_versions import requirement
from dstream.errors import SetupError
from dstream.failures import Failure, attach

__all__ = ["NEEDED", "LookedAt", "lacking_on_workers", "seen_by_a_task"]

NEEDED = {
    "cloudpickle": "cloudpickle>=3.0,<3.1.3",
    "fsspec": "fsspec>=2023.10",
    "more_itertools": "more-itertools>=10.1",
    "msgpack": "msgpack>=1.1,<2",
    "numpy": "numpy",
    "pandas": requirement("pandas"),
    "pyarrow": requirement("pyarrow"),
}
"""Modules that tasks import, and the packages that pip installs for them. dstream itself travels with the job."""

_NO_MODULE = re.compile(
    r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)|(PackageNotFoundError|PACKAGE_NOT_INSTALLED)"
)
_NO_PYTHON = re.compile(r"Cannot run program \"?([^\"\n]+?)\"?: .*?(No such file or directory|Permission denied)")
_TWO_PYTHONS = re.compile(
    r"PYTHON_VERSION_MISMATCH|different (?:minor )?version[s]? .*?than that in driver|different version in worker"
)
_CHOOSE = "or name another interpreter for them: set PYSPARK_PYTHON before Spark starts"


class LookedAt(NamedTuple):
    """The Python of a task, as it sees it."""

    executable: str
    version: str
    host: str
    missing: list[str]


def lacking_on_workers(text: str, session: Any) -> SetupError | None:
    """Return the error that says what workers lack, if the text of a failed job shows that something is missing.

    Args:
        text: that of Spark's exception.
        session: where a job may look; None if nobody may.
    """
    found = _words(text, session)
    if found is None:
        return None
    made = SetupError(found)
    attach(made, Failure(None, remote_traceback=text))
    return made


def _words(text: str, session: Any) -> str | None:
    no_python = _NO_PYTHON.search(text)
    if no_python is not None:
        return (
            f"Spark's workers cannot start the Python {no_python[1]}: {no_python[2]}. Install it on each machine, "
            f"{_CHOOSE}"
        )
    here = ".".join(map(str, sys.version_info[:3]))
    lacks = _NO_MODULE.search(text)
    if lacks is None and not _TWO_PYTHONS.search(text):
        return None
    seen = None if session is None else seen_by_a_task(session)
    if _TWO_PYTHONS.search(text):
        theirs = "another Python" if seen is None else _shown(seen)
        return (
            f"Spark's workers run {theirs}, and this process Python {here}; both need the same minor version. Install "
            f"it on each machine, {_CHOOSE}"
        )
    if seen is None or not seen.missing:
        return None if lacks is None or lacks[1] not in NEEDED else _lines(f"Python lacks {lacks[1]}", [lacks[1]], None)
    return _lines(f"{_shown(seen)} lacks {', '.join(seen.missing)}", seen.missing, seen.executable)


def _lines(what: str, missing: list[str], executable: str | None) -> str:
    requirements = " ".join(f"'{NEEDED[name]}'" for name in missing)
    return (
        f"Spark's workers cannot run dstream: their {what}, which dstream needs. Install them on each machine: "
        f"{executable or 'python3'} -m pip install {requirements}; {_CHOOSE}"
    )


def _shown(seen: LookedAt) -> str:
    return f"Python {seen.version} ({seen.executable} on {seen.host})"


_LOOK = """
def look(_):
    import importlib.util, json, socket, sys
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return json.dumps([sys.executable, sys.version.split()[0], socket.gethostname(), missing])
"""


def seen_by_a_task(session: Any) -> LookedAt | None:
    """Run a job that needs nothing but Spark's own pickle; None if it fails as well."""
    from pyspark.sql.functions import udf

    # A function of a module is pickled by its name, and the worker may lack the module.
    names: dict[str, Any] = {"__name__": "__main__", "NEEDED": list(NEEDED)}
    exec(_LOOK, names)
    try:
        [row] = session.range(1).select(udf(names["look"], "string", useArrow=False)("id")).collect()
        return LookedAt(*json.loads(row[0]))
    except Exception:  # the failure that is explained stays the one that counts
        return None
