"""Shared fixtures: each test that asks for `engine` runs on both engines, on one Spark session for the whole run."""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import dstream as ds
from dstream.engine.inprocess import InProcessEngine
from dstream.stream import Stream
from dstream.testing.engines import MASTER, SETTINGS

if TYPE_CHECKING:
    from tests.servers.java_of_programs import JavaOfPrograms
    from tests.servers.kafka_broker import Broker
    from tests.servers.loaded_python import LoadedPython

# A machine that does other work meanwhile is no failure; a test that hangs says where (`faulthandler_timeout`).
# No folder of examples that failed: the checkout may be read-only, and cases of one test would read each other's.
settings.register_profile("dstream", deadline=None, database=None)
settings.load_profile("dstream")


class Doctests:
    """What the examples in docstrings may use without an import: the names of `dstream`, on the local engine."""

    @pytest.fixture(autouse=True)
    def names(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Offer the names, and let streams without a context run locally."""
        if not isinstance(request.node, pytest.DoctestItem):
            yield
            return
        request.getfixturevalue("doctest_namespace").update({name: getattr(ds, name) for name in ds.__all__})
        place = tmp_path_factory.getbasetemp() / "doctests"
        with pytest.MonkeyPatch.context() as patch, ds.connect(engine="local", storage=place) as context:
            patch.setenv("DSTREAM_STORAGE", str(place))  # An example may connect without saying where to.
            ds.set_default_context(context)
            yield


def pytest_configure(config: pytest.Config) -> None:
    """Set the names of doctests of the packages, the handler of Ctrl-C in programs, and a fast start of Java."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # A shell starts what runs in its background so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Some sixty Java processes start in one run, and most of their time goes into loading classes and into compiling
    # what runs once.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    config.pluginmanager.register(Doctests(), "dstream-doctests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests from garbage collection: all of them stay, and each collection takes longer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, since they stay: a forked process would copy all of them."""
    gc.collect()
    gc.freeze()


_MANY_TESTS = 1000
_ARCHIVING = """
import dstream as ds
from pyspark import SparkContext

with ds.connect("local[2]", storage="memory:", progress=False) as ctx:
    ctx.stream([3, 1, 2], 2).map(abs).sorted().to_list()
SparkContext._gateway.proc.stdin.close()
SparkContext._gateway.proc.wait()
"""


_BYTE_CODE = os.environ.get("PYTHONPYCACHEPREFIX")
"""The folder that keeps byte code from run to run, if there is one: `make test` has it in the environment."""


@pytest.fixture(scope="session", autouse=True)
def kept_byte_code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile modules once for all programs that a long run starts: hundreds of them load all of dstream.

    Without a folder that keeps byte code it is one of the run: the checkout may be read-only. Modules that tests have
    written are of no use to the next run.
    """
    with pytest.MonkeyPatch.context() as patch:
        if len(request.session.items) >= _MANY_TESTS:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", _BYTE_CODE or str(_folder_of_the_run(tmp_path_factory) / "byte-code"))
        yield
    if _BYTE_CODE:
        shutil.rmtree(Path(_BYTE_CODE, *tmp_path_factory.getbasetemp().parts[1:]), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def archived_classes(
    kept_byte_code: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Map the classes that one Java process has loaded in the others of a long run: each takes half as long.

    Making the archive takes as long as it saves five of them, so the first process of the run makes it for all, and it
    is kept with byte code. Without one, as before it is there and with an older Java, they load classes.
    """
    options, process = os.environ["SPARK_SUBMIT_OPTS"], os.environ.get("PYTEST_XDIST_WORKER")
    archive = Path(_BYTE_CODE or _folder_of_the_run(tmp_path_factory), _name_of_archive(options))
    if len(request.session.items) >= _MANY_TESTS and not request.config.pluginmanager.has_plugin("tests.quick"):
        if process in (None, "gw0") and not archive.exists():
            with suppress(subprocess.TimeoutExpired):
                _archive(archive, options)
        # If it does not fit, as with the jars in another folder, Java is to load classes and say nothing of it.
        quiet = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
        os.environ["SPARK_SUBMIT_OPTS"] = f'{options} {quiet} "-XX:SharedArchiveFile={archive}"'
    yield
    os.environ["SPARK_SUBMIT_OPTS"] = options
    if not _BYTE_CODE:
        archive.unlink(missing_ok=True)


def _folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all processes of the run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def _name_of_archive(options: str) -> str:
    """Return another name for another Java, other jars and other options: Java would silently not use the archive."""
    spark = find_spec("pyspark")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    needed = [java, *(Path(folder, "jars") for folder in (spark and spark.submodule_search_locations) or ())]
    found = [(os.path.realpath(each), os.stat(each).st_mtime) for each in needed if each and os.path.exists(each)]
    return f"classes-{zlib.crc32(repr((found, options)).encode()):08x}.jsa"


def _archive(archive: Path, options: str) -> None:
    for earlier in archive.parent.glob("classes-*"):
        earlier.unlink()
    unfinished = archive.with_suffix(".unfinished")
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f'{options} "-XX:ArchiveClassesAtExit={unfinished}"'}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", _ARCHIVING]
    subprocess.run(command, env=environment, capture_output=True, timeout=240, check=False)
    with suppress(FileNotFoundError):
        unfinished.rename(archive)


class EngineUnderTest:
    """A context, and how a test gets its data onto it."""

    def __init__(self, context: ds.Context) -> None:
        self.context = context
        self.name = context.engine

    def stream(self, items: Iterable[Any], partitions: int = 2) -> Stream[Any]:
        """Return a stream of `items` in that many partitions, empty ones among them if there are fewer items."""
        return self.context.stream(items, partitions)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the collections of the test run live: not below the checkout, which may be read-only."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def spark_context(data: Path) -> Iterator[ds.Context]:
    """The one Spark context of the test run: two cores, little memory, no UI."""
    with ds.connect(MASTER, config=SETTINGS, storage=data) as context:
        with pytest.MonkeyPatch.context() as patch:
            # Not in the settings of the context, which other contexts of the run have to repeat.
            daemon = "-Dspark.python.daemon.module=tests.loaded_workers"
            patch.setenv("SPARK_SUBMIT_OPTS", f"{os.environ['SPARK_SUBMIT_OPTS']} {daemon}")
            context.running_engine()
        yield context


@pytest.fixture(scope="session")
def local_context(data: Path) -> Iterator[ds.Context]:
    """The local context of the test run."""
    with ds.connect(engine="local", storage=data) as context:
        yield context


@pytest.fixture(scope="session")
def inprocess_context(data: Path) -> Iterator[ds.Context]:
    """The context of the test run that runs the graphs of Spark in this process, without Java."""
    with ds.connect(engine="local", storage=data) as context:
        context._engine, context._engine_name = InProcessEngine(512 * 2**20), InProcessEngine.name
        yield context


@pytest.fixture(scope="session")
def moving_context(data: Path) -> Iterator[ds.Context]:
    """The context of the test run whose runs begin in this process and move between two tasks, at random."""
    from tests.engine.moving_here import MovingEngine

    with ds.connect(engine="local", storage=data) as context:
        context._engine, context._engine_name = MovingEngine(), MovingEngine.name
        yield context


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaOfPrograms]:
    """The one Java of the test run in which programs start their Spark: `java()` has the variables for the next one."""
    from tests.servers.java_of_programs import running_java

    with running_java(tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.fixture(scope="session")
def loaded_python() -> Iterator[LoadedPython]:
    """The one Python of the test run from which processes of scripts are forked, with dstream in it."""
    from tests.servers.loaded_python import running_python

    with running_python() as python:
        yield python


@pytest.fixture(scope="session")
def connect_server() -> Iterator[str]:
    """The address of the one server of Spark Connect of the test run."""
    from tests.connect.server import running_server

    with running_server() as address:
        yield address


@pytest.fixture(scope="session")
def connect_context(connect_server: str, data: Path) -> Iterator[ds.Context]:
    """The one context of the test run on a server of Spark Connect."""
    with ds.connect(connect_server, storage=data) as context:
        yield context


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one Kafka broker of the test run; a machine that cannot start one skips the test, and says why."""
    from tests.servers.kafka_broker import missing, running_broker

    if reason := missing():
        pytest.skip(reason)
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of the one PostgreSQL of the test run; a machine that cannot start one skips the test, and says why."""
    from tests.servers.postgresql import running_postgresql

    with running_postgresql() as url:
        yield url


_WITH_A_SERVER = re.compile(r"(?:^ *def .*\b|\")(?:(broker)|(connect)_(?:server|context)|(postgresql))\b", re.MULTILINE)
"""A test, or a fixture, that takes one of the servers above, or the name of that fixture."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run all files that use one server in one process: each process that runs one of them starts the server."""
    from xdist.scheduler import LoadFileScheduling

    @functools.cache
    def scope_of(file: str) -> str:
        taken = _WITH_A_SERVER.search((config.rootpath / file).read_text("utf-8"))
        return taken[taken.lastindex or 0] if taken else file

    class ByServer(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid.partition("::")[0])

    return ByServer(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one; nothing is configured from outside."""
    for name in [name for name in os.environ if name.startswith("DSTREAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(
    params=[
        "local",
        pytest.param("inprocess", marks=pytest.mark.beside_spark("engine", is_spark=False)),
        pytest.param("spark", marks=pytest.mark.beside_spark("engine", is_spark=True)),
    ]
)
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    """Each engine in turn: the last case of a test runs on Spark, and the others run Spark's graphs in this process.

    A test that is marked with `on_spark("how")` has one case on Spark for each value of its parameter `how`.
    """
    return EngineUnderTest(request.getfixturevalue(f"{request.param}_context"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each case of a test that asks for `engine` one of two: Spark, or the engine that runs Spark's graphs here.

    The last case is that of Spark, since lists of cases begin with what is small.
    """
    case_of: dict[object, object] = {}
    items[:] = reversed([item for item in reversed(items) if _is_wanted(item, case_of)])


def _is_wanted(item: pytest.Item, case_of: dict[object, object]) -> bool:
    """Say whether the case of an item runs on the engine of the item; remember the cases that run on Spark."""
    beside, chosen = item.get_closest_marker("beside_spark"), item.get_closest_marker("on_spark")
    if beside is None or not isinstance(item, pytest.Function):
        return True
    # By identity: not every value has a hash, and the indices that pytest 9 has of them differ from engine to engine.
    given = {name: id(value) for name, value in item.callspec.params.items()}
    case = {name: value for name, value in given.items() if name != beside.args[0]}
    values = [given[name] for name in chosen.args] if chosen else []
    runs_on_spark = case_of.setdefault((item.parent, item.originalname, *values), case) == case
    return runs_on_spark is beside.kwargs["is_spark"]
