"""The settings that Spark starts with, beside those of the user."""

from __future__ import annotations

import functools
import logging
import os
import subprocess
import sys
import tempfile

import pytest

from dstream.engine.spark.session import settings
from dstream.engine.spark.session.settings import Settings
from dstream.engine.spark.session.startup import quiet_py4j

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """No folder of ours is known, before the test and after it, so that none is taken from a Spark that runs."""
    before = settings._folder_of_sockets, settings._folder_of_blocks
    for name, folder in zip(("_folder_of_sockets", "_folder_of_blocks"), before, strict=True):
        monkeypatch.setattr(settings, name, functools.cache(folder.__wrapped__))


def defaults(master="local[2]", **config):
    """Return the settings for a master, as far as they are not the user's."""
    return settings.defaults(master, Settings(master, config, "OFF", 2**20))


def test_workers_on_this_machine_use_sockets_in_a_private_folder():
    """Only this user may enter the folder, and all sessions share it, as the JVM remembers the first one."""
    folder = defaults()[FOLDER]

    assert (os.stat(folder).st_mode & 0o777, defaults()[FOLDER], defaults()[ENABLED]) == (0o700, folder, "true")


def test_a_cluster_keeps_the_sockets_that_it_has():
    """A folder of this machine means nothing on others."""
    assert ENABLED not in defaults("spark://host:7077")


def test_the_users_own_choice_of_sockets_stands():
    """Who names one of the settings gets none of ours."""
    assert FOLDER not in defaults(**{ENABLED: "false"})


def test_a_long_temporary_folder_is_no_place_for_sockets(tmp_path, monkeypatch):
    """The path of a socket has about 100 characters at most, so the sockets go elsewhere."""
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    assert len(defaults()[FOLDER]) <= 59


def test_without_a_place_for_sockets_there_are_none(monkeypatch):
    """Where no short folder can be written to, Spark keeps to TCP."""
    monkeypatch.setattr(os, "access", lambda *args: False)

    assert ENABLED not in defaults()


def test_a_disk_that_is_full_keeps_spark_to_tcp(monkeypatch):
    """A folder that cannot be made is no reason not to start."""

    def full(**options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)

    assert ENABLED not in defaults()


def test_a_system_without_such_sockets_keeps_to_tcp(monkeypatch):
    """Not every Python has them."""
    monkeypatch.delattr(settings.socket, "AF_UNIX")

    assert ENABLED not in defaults()


def test_what_spark_shuffles_stays_in_a_private_folder(monkeypatch):
    """Only this user may enter it, and all sessions share it."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    folder = defaults()["spark.local.dir"]

    assert (os.stat(folder).st_mode & 0o777, defaults()["spark.local.dir"]) == (0o700, folder)


def test_the_users_own_place_for_blocks_stands(monkeypatch):
    """Who has named one has a reason, such as a larger disk; a cluster has places of its own."""
    assert "spark.local.dir" not in defaults(**{"spark.local.dir": "/big"})
    assert "spark.local.dir" not in defaults("spark://host:7077")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/big")

    assert "spark.local.dir" not in defaults()


_SHUFFLES = """
import os, pathlib, dstream as ds
top = pathlib.Path(os.environ["TMPDIR"])
with ds.connect("local[1]", progress=False) as ctx:
    ctx.stream(range(9), partitions=3).distinct().to_list()
    for blocks in top.rglob("blockmgr*"):
        print(oct((top / blocks.relative_to(top).parts[0]).stat().st_mode & 0o777), len(blocks.relative_to(top).parts))
"""


def test_spark_leaves_no_blocks_that_others_may_read(tmp_path):
    """Neither while it runs, which is in a folder of ours, nor afterwards."""
    steering = ("SPARK_LOCAL_DIRS", "DSTREAM_CONFIG", "DSTREAM_MASTER")
    kept = {name: value for name, value in os.environ.items() if name not in steering}
    options = f"{kept.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={tmp_path}"
    environment = {**kept, "TMPDIR": str(tmp_path), "SPARK_SUBMIT_OPTS": options, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run([sys.executable, "-c", _SHUFFLES], env=environment, capture_output=True, text=True)

    assert ended.stdout == "0o700 2\n", ended.stderr
    assert list(tmp_path.glob("*dstream*")) == []


@pytest.mark.parametrize(("before", "after"), [(logging.NOTSET, logging.WARNING), (logging.DEBUG, logging.DEBUG)])
def test_py4j_tells_of_no_connections_unless_it_was_asked(monkeypatch, before, after):
    """A program that logs at INFO would have a line of it for each job."""
    logger = logging.getLogger("py4j")
    monkeypatch.setattr(logger, "level", before)
    quiet_py4j()

    assert logger.level == after
