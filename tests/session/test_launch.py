"""The settings that Spark starts with, beside those of the user."""

from __future__ import annotations

import os
import tempfile

import pytest

from dstream.engine.spark import launch
from dstream.engine.spark.launch import Settings

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"


@pytest.fixture(autouse=True)
def _fresh():
    """No folder of sockets is known, before the test and after it."""
    launch._folder_of_sockets.cache_clear()
    yield
    launch._folder_of_sockets.cache_clear()


def defaults(master="local[2]", **config):
    """Return the settings for a master, as far as they are not the user's."""
    return launch._defaults(master, Settings(master, config, "OFF", 2**20))


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
    monkeypatch.delattr(launch.socket, "AF_UNIX")

    assert ENABLED not in defaults()
