"""One Java process in which programs of tests start their Spark, one after another.

A Java of its own costs a program three quarters of its CPU: it loads and compiles what every Spark needs. Here each
program has its own Spark all the same, with settings, workers and an end of its own; only what Java, and the workers,
write to stderr does not reach it. Programs that are about that, or about how Java starts and ends, start their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["JavaOfPrograms", "running_java"]

_REPOSITORY = Path(__file__).parents[2]

_OF_PROGRAMS = ("SPARK_", "PYSPARK_", "DSTREAM_")


class JavaOfPrograms:
    """Java runs; call it for the variables by which the next program finds it."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        parameters = gateway.java_parameters
        self._variables = {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
        }

    def __call__(self) -> dict[str, str]:
        """Return the variables, once a Spark is gone that a killed program has left."""
        spark = self.gateway.jvm.org.apache.spark
        if getattr(getattr(spark, "SparkEnv$"), "MODULE$").get() is not None:  # py4j finds no static `get`.
            spark.SparkContext.getOrCreate().stop()
        return dict(self._variables)


@contextmanager
def running_java(folder: Path) -> Iterator[JavaOfPrograms]:
    """Start Java with a home of Spark below `folder`, where a cluster on one machine may write; end it at the end."""
    from pyspark.java_gateway import launch_gateway

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_OF_PROGRAMS) and name != "SPARK_SUBMIT_OPTS"]:
            patch.delenv(name)
        patch.setenv("SPARK_HOME", _links_to_spark(folder))
        patch.setenv("PYTHONPATH", str(_REPOSITORY))
        gateway: Any = launch_gateway(None, quiet)  # type: ignore[no-untyped-call]
    remembered = tempfile.mkdtemp(prefix="dstream-")  # The path of a socket has a hundred characters at most.
    try:
        _remember(gateway, remembered)
        yield JavaOfPrograms(gateway)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        shutil.rmtree(remembered, ignore_errors=True)


def _links_to_spark(folder: Path) -> str:
    """Make a home of Spark of links, since a cluster on one machine writes its logs there."""
    import pyspark

    home = folder / "spark_home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return str(home)


def _remember(gateway: Any, folder: str) -> None:
    """Set a lasting folder for Java: it uses that of its first Spark (4.3), which is removed with its program."""
    settings = {
        "spark.master": "local[1]",
        "spark.app.name": "first",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": folder,
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
    }
    conf = gateway.jvm.SparkConf(False)
    for name, value in settings.items():
        conf.set(name, value)
    first = gateway.jvm.JavaSparkContext(conf)
    gateway.jvm.PythonRDD.collectAndServe(first.emptyRDD().rdd())
    first.stop()
