"""A server of Spark Connect for tests, from the package that PySpark is installed with."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["running_server"]

_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executorEnv.PYTHONHASHSEED": "0",
    "spark.ui.enabled": "false",
}


@contextmanager
def running_server(python: str = sys.executable) -> Iterator[str]:
    """Start a server with two cores, whose workers run on `python`; give its address, and stop it at the end."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = [part for name, value in _SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    command = [str(home / "bin/spark-submit"), "--master", "local[2]", *settings]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    env = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": python, "SPARK_CONNECT_MODE_ENABLED": ""}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        try:
            yield f"sc://127.0.0.1:{_port(server)}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _port(server: subprocess.Popen[str]) -> int:
    """Read the messages of a server until it says where it is; a thread throws the others away."""
    said: list[str] = []
    assert server.stderr is not None
    for line in server.stderr:
        said.append(line)
        if found := re.search(r"Connect server started at: .*:(\d+)", line):
            threading.Thread(target=deque, args=(server.stderr, 0), daemon=True).start()
            return int(found[1])
    raise RuntimeError("the server did not start: " + "".join(said[-20:]))
