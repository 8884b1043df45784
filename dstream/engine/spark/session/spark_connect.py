"""Spark Connect: a session on a server, for a context whose master is `sc://host:port`.

Each context has a session of its own there, which ends with it; the server runs on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from dstream.engine.spark.port.connect_port import ConnectPort
from dstream.engine.spark.port.forked_processes import is_forked, talks_to_a_server
from dstream.engine.spark.spark_errors import ended
from dstream.engine.spark.worker_packages import lacking_on_workers
from dstream.engine.worker.spark_versions import check_connect
from dstream.errors import SetupError
from dstream.values.distribution import pip_install

__all__ = ["connected_port", "is_connect", "is_server", "leave"]

_SCHEME = "sc://"
_FEW_RETRIES, _RETRIES = 3, 6
_LONGEST_WAIT = 4000
"""In milliseconds, between two attempts: together a second, or twelve. PySpark's own take ten minutes, after which no
server knows the session."""


def is_server(master: str | None) -> bool:
    """Say whether a master is a server of Spark Connect."""
    return master is not None and master.startswith(_SCHEME)


def is_connect(session: object) -> bool:
    """Say whether a session of the user's is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def connected_port(master: str | None, theirs: Any, settings: Mapping[str, str]) -> ConnectPort:
    """Return a port to a new session, on which the functions of this process run.

    Args:
        master: the server; None for that of `theirs`.
        theirs: a session of the user's.
        settings: SQL settings of the new session.

    Raises:
        SetupError: the server cannot be reached, or cannot run dstream; the message says why.
    """
    from pyspark.errors import PySparkException

    check_connect()
    server = "the Spark server" if master is None else master.partition("/;")[0]  # What follows may be a token.
    try:
        session = theirs.newSession() if master is None else _session(master)
        talks_to_a_server()
        port = ConnectPort(session)
        try:
            check_connect(session.version)
            for name, value in settings.items():
                session.conf.set(name, value)
            port.cores()  # A first job shows whether the interpreter of the server has what is needed.
        except PySparkException as error:
            lacking = lacking_on_workers(str(error), session)
            leave(port)
            raise lacking or error from None
        except BaseException:
            leave(port)
            raise
        _retry(session, _RETRIES)
    except PySparkException as error:
        raise SetupError(f"{server} cannot run dstream: {ended(error)}") from error
    return port


def leave(port: ConnectPort) -> None:
    """End the session of a port and its clones, also one whose server is gone; a parent's is left to the parent."""
    if is_forked():
        return
    for session in (*port.clones, port.session):
        _retry(session, _FEW_RETRIES)
        session.stop()


def _session(master: str) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise SetupError(f"Spark Connect needs further packages: {pip_install('connect')} ({error})") from error
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # An exception says the same.
    session = SparkSession(master)
    _retry(session, _FEW_RETRIES)
    return session


def _retry(session: Any, times: int) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=times, max_backoff=_LONGEST_WAIT)])
