"""Why Spark does not start, in words: masters that cannot be, or do not answer, and settings that Java refuses."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from dstream.engine.spark.spark_errors import innermost
from dstream.errors import DStreamError, SetupError
from dstream.values.contexts import contextmanager

__all__ = ["check_master", "starting"]

_ANSWERS_WITHIN = 5.0
_SHOW = "connect(log_level='INFO') shows Spark's own messages"
_FORMS = (
    "local, local[4], local[*], spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 for Spark Connect"
)
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)( *, *[1-9]\d*)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_URL = re.compile(r"[a-z][\w+.-]*://.+", re.DOTALL)
_STANDALONE = "spark://"
_OF_YARN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def check_master(master: str | None, config: Mapping[str, Any]) -> None:
    """Look, before Java starts, whether there can be such a master, and whether a standalone one answers.

    Raises:
        SetupError: there is none of this form, or none that answers.
    """
    if master is None or _LOCAL.fullmatch(master):
        return
    if master == "yarn":
        if not any(name in os.environ for name in _OF_YARN) and not any(".yarn." in name for name in config):
            raise SetupError(
                "the master yarn needs the files that say where Hadoop runs: set HADOOP_CONF_DIR or YARN_CONF_DIR to "
                "their folder"
            )
    elif not _URL.fullmatch(master):
        raise SetupError(f"{master!r} is no master of Spark; write {_FORMS}")
    elif master.startswith(_STANDALONE):
        _check_answers(master)


def _check_answers(master: str) -> None:
    problems = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise SetupError(f"{master!r} is no master of Spark: write spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN).close()
            return
        except OSError as error:
            problems.append(f"{address}: {error}")
    raise SetupError(
        f"no Spark master answers at {master} ({'; '.join(problems)}); look whether it runs, under this name and port"
    )


@contextmanager
def starting(master: str | None) -> Iterator[None]:
    """Turn whatever Spark and its Java raise while they start into one error in words.

    Raises:
        SetupError: Spark did not start.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except DStreamError:
        raise
    # A constructor in Java raises a Py4JJavaError, which is no PySparkException (4.3).
    except (PySparkException, Py4JError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise SetupError(f"Spark did not start: {_words(error, master)}. {_SHOW}") from error


def _words(error: BaseException, master: str | None) -> str:
    if re.search(r"All masters are unresponsive|on a stopped SparkContext", str(error)):
        return f"the master {master} did not take this application; look at its log, and at the release of its Spark"
    missing = re.search(r"ClassNotFoundException: ([\w.$]+)", str(error))
    if missing is not None:
        return f"Java has no class {missing[1]}; name the jar that holds it in spark.jars or spark.jars.packages"
    if isinstance(error, ConnectionError) or "Answer from Java side is empty" in str(error):
        return "its Java process ended while it started"
    return innermost(error).rstrip(". ")
