"""A Spark that cannot start is one SetupError in words: at `connect()` where it can be known, without Java's stack."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import dstream as ds
from dstream.engine.spark.session import launch
from dstream.engine.spark.session.settings import Settings, check_master, starting
from dstream.engine.spark.session.startup import submitted
from dstream.errors import IllegalStateError, SetupError
from dstream.operators.rows.caches import Caches

CALL = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n: "
STACK = (
    "\n\tat org.apache.spark.SparkConf.getDouble(SparkConf.scala:226)\n\tat java.base/java.lang.Thread.run(T.java:1)"
)
REFUSED = {
    "loca[2]": "is no master of Spark; write local, local",
    "local[two]": "is no master",
    "local[0]": "is no master",
    "localhost:7077": "is no master",
    "": "is no master",
    "spark://host": "write spark://host:7077",
    "spark://host:port": "write spark://host:7077",
    "spark://127.0.0.1:1": r"no Spark master answers at spark://127\.0\.0\.1:1 \(127\.0\.0\.1:1: .*refused",
    "spark://127.0.0.1:1,127.0.0.1:2": r"\(127\.0\.0\.1:1: .*; 127\.0\.0\.1:2: ",
    "yarn": "set HADOOP_CONF_DIR or YARN_CONF_DIR",
}
RAISED = [
    (Py4JError(f'{CALL}java.lang.NumberFormatException: Illegal value for key a: "lots"{STACK}'), "Illegal value"),
    (Py4JError(f"{CALL}org.apache.spark.SparkException: Could not parse: 'foo://bar'{STACK}"), "'foo://bar'"),
    (Py4JError(f"{CALL}java.lang.Foo: no\nCaused by: java.io.IOException: the folder is full{STACK}"), "is full"),
    (Py4JError(f"{CALL}java.lang.Foo: Cannot call methods on a stopped SparkContext.{STACK}"), "the master m did not"),
    (PySparkException("[INVALID_CONF_VALUE] The value 'many' is invalid.\n\nJVM stacktrace:\norg.Foo"), "'many'"),
    (
        Py4JError(f"{CALL}java.lang.ClassNotFoundException: no.such.Class{STACK}"),
        "has no class no.such.Class; name the",
    ),
    (ConnectionRefusedError(111, "Connection refused"), "its Java process ended while it started"),
    (OSError("no room"), "no room"),
    (ValueError("a number was expected"), "a number was expected"),
]


@pytest.fixture(autouse=True)
def no_hadoop(monkeypatch):
    """A machine that has no files of Hadoop."""
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("master", REFUSED)
def test_start_refuses_masters_that_cannot_be(master):
    """By their form, by the files that they need, and because nothing answers there."""
    with pytest.raises(SetupError, match=REFUSED[master]):
        check_master(master, {})


def test_start_is_refused_by_connect(monkeypatch):
    """Before Java starts, and before a first job waits for it."""
    monkeypatch.setattr("dstream.engine.spark.session.launch._session_of_the_user", lambda: None)

    for engine in ("spark", "auto"):
        with pytest.raises(SetupError, match=r"'loca\[2\]' is no master"):
            ds.connect("loca[2]", engine=engine)


@pytest.mark.parametrize(
    "master",
    [
        None,
        "local",
        "local[2]",
        "local[*]",
        "local[2,3]",
        "local[*, 4]",
        "local-cluster[2,1,1024]",
        "k8s://https://a:443",
    ],
)
def test_start_takes_masters_that_may_be(master):
    """Whether a cluster manager of another kind answers, Spark itself finds out."""
    check_master(master, {})


def test_start_takes_yarn_where_hadoop_is_known(monkeypatch):
    """By the environment, or by settings."""
    check_master("yarn", {"spark.hadoop.yarn.resourcemanager.address": "host:8032"})
    monkeypatch.setenv("YARN_CONF_DIR", "conf")
    check_master("yarn", {})


def test_start_takes_a_master_that_answers():
    """One of several is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}", {})


@pytest.mark.parametrize(("error", "words"), RAISED, ids=lambda each: str(each)[-30:])
def test_start_failures_are_told_in_words(error, words):
    """Whatever kind of exception Spark, py4j or Java raise; the original one is the cause."""
    with pytest.raises(SetupError, match=words) as caught, starting("m"):
        raise error

    assert str(caught.value).startswith("Spark did not start: ")
    assert not any(sign in str(caught.value) for sign in ("\tat ", "java.", "org.apache", "calling None", "JVM"))
    assert caught.value.__cause__ is error


def test_start_leaves_errors_of_dstream_alone():
    """They say what happened already."""
    with pytest.raises(IllegalStateError, match="runs already"), starting("m"):
        raise IllegalStateError("Spark runs already")


def test_start_asks_what_was_submitted_only_where_spark_submit_has_started_the_process(monkeypatch):
    """`spark-submit --master` is the master of a `connect()` without one."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert submitted("spark.master") is None

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", lambda: None)
    properties = SimpleNamespace(getProperty={"spark.master": "yarn"}.get)
    java = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=properties)))
    monkeypatch.setattr("pyspark.SparkContext._jvm", java)
    assert (submitted("spark.master"), submitted("spark.app.name")) == ("yarn", None)


def test_a_start_that_fails_leaves_no_spark_behind(monkeypatch):
    """Java finds fault with a setting of the user's when Spark runs: the next start may have another one."""
    stops = []

    def refuses(name, value):
        raise PySparkException("[INVALID_CONF_VALUE] The value 'many' is invalid.")

    spark = SimpleNamespace(conf=SimpleNamespace(set=refuses), stop=lambda: stops.append("stopped"))
    monkeypatch.setattr(launch, "_running", None)
    monkeypatch.setattr(launch, "_session_of_the_user", lambda: None)
    monkeypatch.setattr(launch, "archive_for", lambda settings: None)
    monkeypatch.setattr(launch, "started", lambda archive, settings: spark)
    settings = Settings("local[1]", {"spark.sql.shuffle.partitions": "many"}, "OFF", 2**20)
    with pytest.raises(SetupError, match=r"Spark did not start: .*'many' is invalid"):
        launch.start(settings, Caches())

    assert (stops, launch._running) == (["stopped"], None)
