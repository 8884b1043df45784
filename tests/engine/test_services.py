"""Services: what a step reaches beside its items is made where the step runs, and destroyed at the end."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dstream as ds
from dstream.engine.spark.run.execution import SparkRun
from dstream.engine.spark.run.service_listener import ServiceListener
from dstream.errors import CancelledError, EngineError
from dstream.failures import failure
from dstream.plan import Step, ToList, Write, called, rewrite
from dstream.plan.operations.calls import WithService
from dstream.plan.operations.elementwise import UsingBatches
from dstream.plan.operations.ends import Several
from dstream.plan.operations.streams import Fork
from dstream.spi.runtime import Service
from dstream.stream import Stream


class Noted:
    """Makes services that note in a file, which workers share, what becomes of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{what} {os.getpid()}\n")

    def create(self) -> Noted:
        self.note("made")
        return self

    def destroy(self) -> None:
        self.note("gone")

    def service(self, *, shared: bool = True) -> Service[Noted]:
        return Service(self.create, Noted.destroy, shared)

    def notes(self) -> Counter[str]:
        """Return how often each was noted."""
        return Counter(line.split()[0] for line in self.path.read_text().split("\n") if line)

    def processes(self) -> int:
        """Return how many processes noted something."""
        return len({line.split()[1] for line in self.path.read_text().split("\n") if line})


@pytest.fixture
def noted(tmp_path: Path) -> Noted:
    """Notes of one test."""
    return Noted(tmp_path / "notes")


def using(stream: Any, service: Any, fn: Callable[[Any, Any], Any], action: Any = "map") -> Stream[Any]:
    """Return the stream of a step with a service."""
    return Stream(
        WithService(stream._node, service, fn, action, step=called(f"{action}_using", repr(service), fn)),
        stream._runtime,
    )


def doubled(service: Any, item: int) -> int:
    """Need a service that is alive."""
    assert isinstance(service, Noted)
    return item * 2


@pytest.mark.on_spark("shared")
@pytest.mark.parametrize("shared", [True, False])
def test_a_step_with_a_service_gives_what_its_function_gives(engine, noted, shared):
    """Map, filter and flat_map, fused with other steps; None is an item."""
    service = noted.service(shared=shared)
    numbers = engine.stream(range(6), 3).map(abs)

    assert using(numbers, service, doubled).map(str).to_list() == ["0", "2", "4", "6", "8", "10"]
    assert using(numbers, service, lambda s, n: n % 2, "filter").to_list() == [1, 3, 5]
    assert using(numbers, service, lambda s, n: [n] * (n == 4) or None, "flat_map").to_list() == [4]
    assert using(numbers, service, lambda s, n: None).limit(2).to_list() == [None, None]
    assert noted.notes()["made"] == noted.notes()["gone"]


def test_an_unshared_service_is_one_for_each_task_with_items(engine, noted):
    """In two steps that were given the same one it is the same."""
    service = noted.service(shared=False)
    twice = using(using(engine.stream([1, 2], 3), service, doubled), service, doubled)

    assert twice.to_list() == [4, 8]
    tasks = 1 if engine.name == "local" else 2
    assert noted.notes() == {"made": tasks, "gone": tasks}


def test_a_shared_service_is_one_for_each_process(engine, noted):
    """In all tasks, stages and steps of a run; it is gone when the result is there."""
    service = noted.service()
    before = using(engine.stream(range(40), 8), service, doubled)
    assert using(before.sorted(reverse=True), service, doubled).limit(2).to_list() == [156, 152]

    notes = noted.notes()
    assert notes["made"] == notes["gone"] == noted.processes()
    assert noted.processes() <= 2


@pytest.mark.on_spark("shared")
@pytest.mark.parametrize("shared", [True, False])
def test_services_are_destroyed_after_a_failure(engine, noted, shared):
    """The failure names the step and the item, and can be replayed with a service of its own."""
    with pytest.raises(ZeroDivisionError) as raised:
        using(engine.stream(range(6), 2), noted.service(shared=shared), lambda s, n: 1 // (n - 4)).to_list()

    assert (failure(raised.value).item, failure(raised.value).step.label) == (
        4, f".map_using(Service(Noted.create, Noted.destroy{'' if shared else ', shared=False'}), lambda)"
    )  # fmt: skip
    assert noted.notes()["made"] == noted.notes()["gone"]
    with pytest.raises(ZeroDivisionError):
        failure(raised.value).replay()
    assert noted.notes()["made"] == noted.notes()["gone"]


def refuse(*given: Any) -> Any:
    """Fail."""
    raise ConnectionRefusedError("nobody there")


@pytest.mark.parametrize("shared", [True, False])
def test_a_service_that_cannot_be_made_names_the_step(engine, shared):
    """And its line; what to do is about the service, not about the function of the step."""
    with pytest.raises(ConnectionRefusedError, match="nobody there") as raised:
        using(engine.stream([1]), Service(refuse, shared=shared), doubled).to_list()
    assert "look at its service" in raised.value.__notes__[-1]

    found = failure(raised.value)
    assert found.step.label.startswith(".map_using(Service(refuse")
    assert Path(found.where.file).name == "test_services.py"


@pytest.mark.parametrize("shared", [True, False])
def test_a_service_that_cannot_be_destroyed_fails_the_run(engine, noted, shared):
    """Unless something failed before."""
    service = Service(noted.create, refuse, shared)
    with pytest.raises(ConnectionRefusedError) as raised:
        using(engine.stream([1, 2]), service, doubled).to_list()
    assert failure(raised.value).step.label.startswith(".map_using(")
    with pytest.raises(ZeroDivisionError):
        using(engine.stream([1, 2]), service, lambda s, n: n // 0).to_list()


def test_partitions_that_are_read_in_an_except_block_tell_that_services_failed():
    """The exception that the caller handles is none of the run, but one of a partition comes first."""
    services = SimpleNamespace(end=lambda: ConnectionRefusedError("nobody there"))
    runner: Any = SimpleNamespace(options=SimpleNamespace(services=services))
    end: Any = None
    [good] = SparkRun(end, runner).together([iter([1, 2])])
    [bad] = SparkRun(end, runner).together([map(operator.floordiv, [1], [0])])
    try:
        raise KeyError
    except KeyError:
        with pytest.raises(ConnectionRefusedError):
            list(good)
        with pytest.raises(ZeroDivisionError):
            list(bad)


@pytest.mark.on_spark("shared")
@pytest.mark.parametrize("shared", [True, False])
def test_a_loop_destroys_services_when_it_ends_or_is_closed(engine, noted, shared):
    """Not before."""
    items = iter(using(engine.stream(range(100), 4), noted.service(shared=shared), doubled))
    assert next(items) == 0
    if shared or engine.name == "local":
        assert noted.notes()["gone"] == 0
    items.close()  # type: ignore[attr-defined]

    assert noted.notes()["made"] == noted.notes()["gone"] > 0


def test_partitions_share_a_run(engine, noted):
    """It ends with the last of them."""
    first, *others = using(engine.stream([1, 2, 3], 3), noted.service(), doubled).partitions()
    found = list(first)
    for each in others:
        found += each

    assert sorted(found) == [2, 4, 6]
    assert noted.notes()["made"] == noted.notes()["gone"] == noted.processes()


class Receipts:
    """A writer whose receipts are the items."""

    def write(self, items: Any) -> Any:
        return ((item,) for item in items)


def test_several_ends_share_a_service(engine, noted):
    """One for the run, not one for each end."""
    fork = Stream(Fork(using(engine.stream([1, 2], 2), noted.service(), doubled)._node), None)
    ends = [fork.map(abs), using(fork, noted.service(), doubled), fork.sorted(reverse=True)]
    several = rewrite(Several(tuple(Write(each._node, Receipts(), None, step=Step(".write_to(x)")) for each in ends)))

    received = engine.context.running_engine().submit(several).result()
    assert received == [[(2,), (4,)], [(4,), (8,)], [(4,), (2,)]]
    assert noted.notes()["made"] == noted.notes()["gone"] <= 2 * noted.processes()


def test_a_guard_looks_after_a_step_with_a_service(engine, noted):
    """Items on which its function fails, not a service that cannot be made."""
    numbers = engine.stream(range(4), 2)

    kept = using(numbers, noted.service(), lambda s, n: 6 // n).ignore(ZeroDivisionError)
    assert kept.to_list() == [6, 3, 2]
    with pytest.raises(ConnectionRefusedError):
        using(numbers, Service(refuse), doubled).ignore(OSError).to_list()


def test_what_a_service_captures_is_checked(spark_context):
    """A lock cannot travel; the message names the variable."""
    lock = threading.Lock()
    with pytest.raises(ds.errors.SerializationError, match="'lock'"):
        using(spark_context.stream([1]), Service(lambda: lock), doubled).to_list()


def test_batches_keep_order_and_grow(engine):
    """One item first, twice as many each time, up to the size."""
    node = UsingBatches(engine.stream(range(12), 1)._node, Service(list), lambda s, some: [tuple(some)], 4)

    assert Stream(node, engine.context).to_list() == [(0,), (1, 2), (3, 4, 5, 6), (7, 8, 9, 10), (11,)]


def test_a_killed_worker_leaves_no_wait(spark_context, noted):
    """The run fails as without services, and the next one has a service again."""
    numbers = spark_context.stream(range(4), 4)
    with pytest.raises(EngineError, match="worker"):
        using(numbers, noted.service(), lambda s, n: os.kill(os.getpid(), signal.SIGKILL) if n == 2 else n).to_list()

    begun = time.monotonic()
    assert using(numbers, noted.service(), doubled).to_list() == [0, 2, 4, 6]
    assert time.monotonic() - begun < 5


def test_a_cancelled_run_destroys_the_services_of_workers_that_live(spark_context, noted):
    """Those of workers that Spark kills are gone with them; nobody waits for these."""

    def slowly(service: Noted, n: int) -> int:
        if n == 1:
            service.note("busy")
            time.sleep(60)
        return n

    run = spark_context.running_engine().submit(
        rewrite(ToList(using(spark_context.stream([0, 1], 2), noted.service(), slowly)._node))
    )
    run.start()
    while not noted.path.exists() or not noted.notes()["busy"]:
        time.sleep(0.01)
    run.cancel()
    with pytest.raises(CancelledError):
        run.result()


def test_a_worker_destroys_when_the_driver_is_gone(noted):
    """The connection breaks."""
    from dstream.engine.tasks.process import RunOfTask, shared_services
    from dstream.plan.operations.elementwise import ServiceFunction
    from dstream.plan.steps import Step

    home = ServiceListener("127.0.0.1", "127.0.0.1")
    services = shared_services(RunOfTask("test", home.address()))
    services.get(ServiceFunction(noted.service(), doubled, 0), Step(".x()", None, 1, 1))
    release = services.use()
    del home
    time.sleep(0.1)
    assert noted.notes() == {"made": 1}
    release()
    while noted.notes()["gone"] == 0:
        time.sleep(0.01)


_ENDING = """
import os
from pathlib import Path
from dstream.engine.tasks.process import DriverAddress, RunOfTask, shared_services
from dstream.plan.operations.elementwise import ServiceFunction
from dstream.plan.steps import Step
from dstream.spi.runtime import Service

services = shared_services(RunOfTask("run", {home!r}))
services.get(ServiceFunction(Service(int, lambda made: Path({path!r}).touch()), int, 0), Step("", None, 1, 1))
os._exit(0)
"""


def test_a_worker_that_spark_ends_destroys_before(tmp_path):
    """Spark ends those that were idle for a minute, while their run goes on, and runs nothing else in them."""
    home, gone = ServiceListener("127.0.0.1", "127.0.0.1"), tmp_path / "gone"
    program = _ENDING.format(home=home.address(), path=str(gone))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr, gone.exists()) == (0, "", True)
    assert home.end() is None


def test_who_does_not_know_the_secret_is_not_waited_for():
    """Any process of the machine may connect."""
    import socket

    home = ServiceListener("127.0.0.1", "127.0.0.1")
    address = home.address()
    with socket.create_connection((address.host, address.port)) as stranger:
        stranger.sendall(b"x" * 32)
        begun = time.monotonic()
        assert home.end() is None

    assert time.monotonic() - begun < 1


def test_it_is_explained(spark_context, noted, capsys):
    """How often it is made."""
    using(using(spark_context.stream([1]), noted.service(), doubled), noted.service(shared=False), doubled).explain()

    text = capsys.readouterr().out
    assert "its service is made once for the run in each process" in text
    assert "its service is made once in each task" in text


def test_a_service_whose_functions_would_not_run_is_refused():
    """Nobody awaits what an async function makes, and nobody runs a generator that destroys."""

    async def later(*service):
        return None

    def pausing(service):
        yield

    with pytest.raises(TypeError, match="create must give a result, and an async function"):
        Service(later)
    with pytest.raises(TypeError, match="destroy must give a result, and an async function"):
        Service(dict, later)
    with pytest.raises(TypeError, match="destroy must give a result, and a function that yields"):
        Service(dict, pausing)
