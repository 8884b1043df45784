"""Spark versions: the range that dstream runs on, and which parts of Spark each version has.

No other module compares versions of Spark (`tests/house/test_spark_versions.py`), so a new version is one change. It is
read on workers too, where rows are made of columns.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from enum import Enum
from typing import Any

from dstream.errors import SetupError

__all__ = [
    "LOWEST",
    "OLDEST",
    "RANGE",
    "REQUIREMENT",
    "TOO_NEW",
    "Feature",
    "check_connect",
    "check_version",
    "has",
    "requirement",
    "requirements",
    "version",
]

OLDEST = (3, 5)
TOO_NEW = (4, 4)
"""The first version that is not supported."""

_NEWEST = (TOO_NEW[0], TOO_NEW[1] - 1)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


RANGE = f"{_dotted(OLDEST)} to {_dotted(_NEWEST)}"
REQUIREMENT = f"pyspark>={_dotted(OLDEST)},<{_dotted(TOO_NEW)}"

LOWEST = {
    (3, 5): {"pandas": (1, 5, 3), "pyarrow": (14,)},
    (4, 0): {"pandas": (2, 0), "pyarrow": (14,)},
    (4, 1): {"pandas": (2, 2), "pyarrow": (15,)},
    (4, 2): {"pandas": (2, 2), "pyarrow": (18,)},
    (4, 3): {"pandas": (2, 2), "pyarrow": (18,)},
}
"""The lowest pandas and pyarrow for each version of Spark: the requirements of PySpark and dstream."""

_TOO_NEW_PANDAS = (3,)
"""PySpark 4.3 warns about it, and users should not see that warning."""


class Feature(Enum):
    """A feature of some versions of Spark: the first version, its name in Spark, and its replacement before."""

    ARROW_TABLES = (4, 0), "`createDataFrame` of an Arrow table", "Java reads the Arrow stream by another call"
    BATCH_BYTES = (4, 0), "`spark.sql.execution.arrow.maxBytesPerBatch`", "a batch has at most 64 rows of any size"
    CLASSIC_MODULES = (4, 0), "`pyspark.sql.classic`", "nothing: the modules of 3.5 are loaded"
    FUTURE_JOBS = (4, 0), "`cancelJobGroupAndFutureJobs`", "the job group is cancelled again until the operation ends"
    JAVA_COLUMNS = (4, 0), "`mapInArrow` of Java with columns", "`pythonMapInArrow` with expressions"
    NO_DISTUTILS = (4, 0), "no need of `distutils`", "Python 3.11, or setuptools: newer Pythons have no `distutils`"
    ROW_CONVERSION = (4, 0), "`pyspark.sql.conversion`", "dstream makes each `Row`"
    SESSION_CLASS = (4, 0), "`SparkSession._get_j_spark_session_class`", "the one class of sessions of 3.5"
    CHECKSUMS = (
        (4, 1),
        "`spark.sql.shuffle.orderIndependentChecksum`",
        "after the loss of an executor, a part that is computed again must have the same rows as before",
    )
    CONNECT = (4, 1), "`cloneSession` of Spark Connect", "`connect('sc://...')` raises a `SetupError`"
    REPARTITION_BY_ID = (4, 1), "`repartitionById`", "`repartition` over ints whose hash is the partition"
    UNIX_SOCKETS = (4, 1), "`spark.python.unix.domain.socket`", "workers use TCP, which costs a small job some 40 ms"

    def __init__(self, since: tuple[int, int], part: str, replacement: str) -> None:
        self.since = since
        self.part = part
        self.replacement = replacement


def numbers_of(version: str) -> tuple[int, int]:
    """Return the numbers of a release, such as (3, 5) of "3.5.9" or of "4.0.0.dev1"."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


@functools.cache
def version() -> str:
    """Return the version of PySpark, which is not loaded for it.

    Raises:
        SetupError: there is none.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError(f"PySpark is not installed for {sys.executable}: pip install '{REQUIREMENT}'")
    loader: Any = spec.loader  # What `spark-submit` brings is a zip file.
    text = loader.get_data(os.path.join(os.path.dirname(spec.origin), "version.py")).decode()
    return str(re.findall(r"^__version__.*?[\"'](.+?)[\"']", text, re.MULTILINE)[0])


def has(feature: Feature) -> bool:
    """Return whether this Spark has a part."""
    return numbers_of(version()) >= feature.since


def requirements() -> dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Return the required versions: the lowest one, and the upper bound, exclusive.

    The lowest pandas and pyarrow are those of the installed PySpark, or of the oldest one.
    """
    try:
        lowest = LOWEST.get(numbers_of(version()), LOWEST[OLDEST])
    except SetupError:
        lowest = LOWEST[OLDEST]
    return {
        "pyspark": (OLDEST, TOO_NEW),
        "pyarrow": (lowest["pyarrow"], None),
        "pandas": (lowest["pandas"], _TOO_NEW_PANDAS),
    }


def requirement(name: str) -> str:
    """Return the requirement of a package of `requirements()` for pip."""
    oldest, too_new = requirements()[name]
    return f"{name}>={_dotted(oldest)}" + (f",<{_dotted(too_new)}" if too_new else "")


def check_version() -> None:
    """Check that dstream runs on the installed PySpark, and PySpark with the installed packages.

    Raises:
        SetupError: one of them is too old or too new, or missing.
    """
    if not OLDEST <= numbers_of(version()) < TOO_NEW:
        raise SetupError(
            f"PySpark {version()} is installed for {sys.executable}, and dstream runs on {RANGE}: "
            f"pip install '{REQUIREMENT}'"
        )
    if not has(Feature.NO_DISTUTILS) and importlib.util.find_spec("distutils") is None:
        raise SetupError(
            f"PySpark {version()} imports distutils, which Python {sys.version_info[0]}.{sys.version_info[1]} does not "
            "have: take Python 3.11 or PySpark 4.0, or pip install setuptools"
        )
    for name, lowest in LOWEST[numbers_of(version())].items():
        found = _numbers(name)
        if found is not None and found < lowest:
            raise SetupError(
                f"{name} {_dotted(found)} is installed for {sys.executable}, and PySpark {version()} needs a newer "
                f"one: pip install '{requirement(name)}'"
            )


def _numbers(package: str) -> tuple[int, ...] | None:
    """Return the version of a package; None where that is not known."""
    from importlib import metadata  # loads the parsers of mail, zip and CSV, which a small plan never needs

    try:
        # Of a version such as 2.2.0rc1 the numbers alone.
        return tuple(map(int, re.findall(r"\d+", metadata.version(package))[:3]))
    except metadata.PackageNotFoundError:
        return None


def check_connect(server: str | None = None) -> None:
    """Make sure that dstream runs with Spark Connect of this PySpark, and of a server.

    Args:
        server: the version of the server, once it is known.

    Raises:
        SetupError: one of the two is too old or too new.
    """
    check_version()
    for name, each in (("PySpark", version()), ("the server", server or version())):
        if not Feature.CONNECT.since <= numbers_of(each) < TOO_NEW:
            oldest = _dotted(Feature.CONNECT.since)
            raise SetupError(f"dstream uses Spark Connect of {oldest} to {_dotted(_NEWEST)}, and {name} is {each}")
