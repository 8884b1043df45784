"""A Kafka broker for tests, of the jars that `make servers` has fetched: one process, which is its own controller."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Broker", "dies_with_its_parent", "missing", "running_broker"]

JARS = Path(sys.prefix) / "servers" / "kafka"
# Java is to start fast, and little of it runs long enough to be worth compiling well.
_JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{JARS}/*"]
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
# A broker that was killed may come back once its old self counts as dead: after 9 s by default.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=200
"""


def missing() -> str | None:
    """Return why no broker can be started here; None if one can."""
    if not any(JARS.glob("kafka_*.jar")):
        return "Kafka is not here: `make servers` fetches it, with Maven"
    return None if shutil.which("java") else "Kafka needs Java"


class Broker:
    """A broker that runs, and can be stopped and started again with what it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self._settings = folder / "server.properties"
        self._settings.write_text(_SETTINGS.format(port=self.port, controller=controller, folder=folder))
        self._process: subprocess.Popen[bytes] | None = None
        identity = "A" * 22
        format_it = [*_JAVA, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(self._settings)]
        subprocess.run(format_it, check=True, capture_output=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._process is None, "it runs"
        with (self.folder / "log").open("ab") as log:
            command = [*_JAVA, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, preexec_fn=dies_with_its_parent
            )
        last = time.monotonic() + 60
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > last:
                self.stop()
                raise RuntimeError("the broker did not start: " + (self.folder / "log").read_text()[-3000:])
            time.sleep(0.05)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Stop all answers during the block, while connections remain."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # The signal waits for a core; until it has one, the other threads of the broker go on and may answer.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill it; what it has acknowledged is in its files."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


def dies_with_its_parent() -> None:
    """Kill this process when the one that started it ends, however that ends. Only Linux can do it."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _answers(port: int) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            pass
        # A broker listens before it knows itself.
        return bool(
            AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}).list_topics(timeout=5).brokers
        )
    except (OSError, KafkaException):
        return False


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Start a broker whose files are in `folder`, and kill it at the end."""
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
