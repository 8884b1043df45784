"""The archive of Java's classes: which one is used, when one is made, and that a start never depends on it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from dstream.engine.spark.session import java, startup
from dstream.engine.spark.session import java as archives
from dstream.engine.spark.session.java import ClassArchive, Java, is_private
from dstream.engine.spark.session.settings import Settings
from dstream.errors import SetupError
from dstream.session import class_archive as archive_maker

SETTINGS = Settings("local[2]", {}, "OFF", 2**20, class_archive=True)


@pytest.fixture
def archive(tmp_path):
    """An archive that is not there, in a folder that is not there."""
    return ClassArchive(tmp_path / "caches" / "classes", "key")


@pytest.fixture
def made(archive):
    """An archive that is there."""
    return with_file(archive)


def with_file(archive, content=b"classes"):
    """Put a file where the archive stands."""
    archive.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = archive.folder / archive.name_of(len(content))
    path.write_bytes(content)
    path.chmod(0o400)
    return archive


def test_without_an_archive_java_has_no_options(archive):
    """Nothing is made by looking."""
    assert (archive.options(), archive.path(), archive.folder.exists()) == ("", None, False)


def test_an_archive_that_is_there_is_used_without_a_word(made):
    """If it does not fit, Java says nothing of it and loads its classes."""
    assert made.options() == (
        f'-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off "-XX:SharedArchiveFile={made.folder}/key-7.jsa"'
    )


def test_an_archive_that_was_cut_off_is_not_used(made):
    """Java 17 would die of it."""
    path = made.folder / "key-7.jsa"
    path.chmod(0o600)
    path.write_bytes(b"class")

    assert made.options() == ""


@pytest.mark.parametrize("name", ["caches/classes/key-7.jsa", "caches/classes", "caches", "."])
def test_what_others_can_change_is_not_used(made, tmp_path, name):
    """An archive is code: neither it nor a folder above it may be written to by anybody else."""
    (tmp_path / name).chmod(0o770)

    assert made.options() == ""


@pytest.mark.parametrize("name", ["caches/classes/key-7.jsa", "caches/classes"])
def test_a_link_is_not_followed(made, tmp_path, name):
    """It may lead to what somebody else has written."""
    (tmp_path / name).rename(tmp_path / "moved")
    (tmp_path / name).symlink_to(tmp_path / "moved")

    assert made.options() == ""


def test_what_belongs_to_somebody_else_is_not_used(made, monkeypatch):
    """As where a program runs as root with the home of a user, or the other way round."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    assert (made.options(), made.is_wanted()) == ("", False)


def test_a_folder_of_all_users_may_hold_one_of_ours(tmp_path):
    """Others cannot rename or remove what is ours in a folder like `/tmp`."""
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o1777)
    assert is_private(tmp_path / "all" / "ours")

    (tmp_path / "all").chmod(0o777)
    assert not is_private(tmp_path / "all" / "ours")


def test_an_archive_is_made_where_there_is_none(archive, made, monkeypatch):
    """Unless the disk is nearly full."""
    missing = replace(archive, key="other")
    assert (missing.is_wanted(), made.is_wanted()) == (True, False)

    usage = shutil.disk_usage("/")
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: usage._replace(free=2**29))
    assert not missing.is_wanted()


def test_an_archive_that_failed_is_tried_again_after_days(archive):
    """Not at every start."""
    archive.folder.mkdir(parents=True)
    mark = archive.folder / "key.failed"
    mark.touch()
    assert not archive.is_wanted()

    os.utime(mark, (0, 0))
    assert archive.is_wanted()


@pytest.fixture
def jars(tmp_path, monkeypatch):
    """A Spark with one jar, and a home."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "a.jar").write_bytes(b"jar")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(archives.sys, "platform", "linux")
    monkeypatch.setattr(archives, "answer_of", lambda path: "17.0.1")
    return tmp_path / "spark" / "jars"


def key_of(path="/usr/bin/java"):
    """Return what the archive belongs to."""
    found = archives.class_archive(Java(path, 17))
    assert found is not None
    return found.key


def test_an_archive_belongs_to_one_java_and_its_jars(jars, monkeypatch):
    """Another release, another path, another jar or another time of one: it is not used any more."""
    keys = [key_of(), key_of("/opt/java")]
    os.utime(jars / "a.jar", (1, 1))
    keys.append(key_of())
    (jars / "b.jar").touch()
    keys.append(key_of())
    monkeypatch.setattr(archives, "answer_of", lambda path: "17.0.2")
    keys.append(key_of())

    assert (len({*keys}), key_of()) == (5, keys[-1])


def test_it_stands_among_the_caches_of_the_user(jars, tmp_path, monkeypatch):
    """Where the system, or the user, has said."""
    java = Java("/usr/bin/java", 17)
    assert archives.class_archive(java).folder == tmp_path / ".cache" / "dstream" / "classes"

    monkeypatch.setattr(archives.sys, "platform", "darwin")
    assert archives.class_archive(java).folder == tmp_path / "Library" / "Caches" / "dstream" / "classes"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert archives.class_archive(java).folder == tmp_path / "mine" / "dstream" / "classes"


@pytest.mark.parametrize("folder", ["/a:b", '/a"b', "/a$b", "/a\\b"])
def test_a_folder_whose_name_java_would_read_otherwise_has_none(jars, monkeypatch, folder):
    """A colon parts two archives, and a quote ends the option."""
    monkeypatch.setenv("XDG_CACHE_HOME", folder)

    assert archives.class_archive(Java("/usr/bin/java", 17)) is None


def test_without_a_home_or_jars_there_is_none(jars, monkeypatch):
    """As for a service, or where Spark is not complete."""
    monkeypatch.delenv("HOME")
    assert archives.class_archive(Java("/usr/bin/java", 17)) is None
    monkeypatch.setenv("HOME", "/")
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    assert archives.class_archive(Java("/usr/bin/java", 17)) is None


@pytest.fixture
def making(monkeypatch):
    """Make archives without Java: what a test puts here is written, and taken if it is not empty."""
    written = [b"new"]

    def run(unfinished):
        unfinished.write_bytes(written[0])
        return "classes"

    monkeypatch.setattr(archive_maker, "_run_what_runs_first", run)
    monkeypatch.setattr(archive_maker, "_is_usable", lambda unfinished, path: bool(written[0]))
    return written


def test_a_made_archive_is_used_and_nothing_else_is_left(archive, making):
    """Only this user can read it; what nobody has used for a month goes."""
    with_file(replace(archive, key="old"))
    os.utime(archive.folder / "old-7.jsa", (0, 0))
    with_file(replace(archive, key="recent"))
    archive_maker.make(archive)

    assert archive.options().endswith('key-3.jsa"')
    assert sorted(os.listdir(archive.folder)) == ["key-3.jsa", "making.lock", "recent-7.jsa"]
    assert (archive.folder.stat().st_mode & 0o777, archive.path().stat().st_mode & 0o777) == (0o700, 0o400)


def test_an_archive_that_java_does_not_take_is_none(archive, making):
    """It is not tried again at once."""
    making[0] = b""
    archive_maker.make(archive)

    assert (archive.options(), archive.is_wanted()) == ("", False)
    assert sorted(os.listdir(archive.folder)) == ["key.failed", "making.lock"]


def test_one_process_makes_archives_at_a_time(archive, making):
    """Another one ends at once; what it would have made is made after a later use."""
    with_file(replace(archive, key="other"))
    with archive_maker._turn(archive.folder) as is_mine:
        archive_maker.make(archive)

    assert (is_mine, archive.path()) == (True, None)


def test_a_home_that_cannot_be_written_to_has_none(archive, monkeypatch):
    """And that is no failure of anything."""

    def read_only(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(type(archive.folder), "mkdir", read_only)
    monkeypatch.setattr(archive_maker.signal, "alarm", lambda seconds: None)
    archive_maker.main(str(archive.folder), "key")


@pytest.mark.parametrize("changes", [{"class_archive": False}, {"master": "spark://host:7077"}])
def test_who_wants_none_has_none(monkeypatch, changes):
    """And Java on a cluster has options of its own."""
    monkeypatch.setattr(startup, "has_java_options", lambda config: False)
    monkeypatch.setattr(startup, "class_archive", lambda java: pytest.fail("it was looked for"))

    assert startup.archive_for(replace(SETTINGS, **changes)) is None


def test_who_chooses_options_of_java_has_none(monkeypatch):
    """They may name an archive, or a collector for which it was not made."""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseZGC")
    monkeypatch.setattr(startup, "class_archive", lambda java: pytest.fail("it was looked for"))

    assert startup.archive_for(SETTINGS) is None


def test_a_java_that_does_not_start_with_it_starts_without(made, monkeypatch):
    """The archive is removed, and is not made again at once."""
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)

    def launched(settings, options=""):
        if options:
            raise SetupError("the Java virtual machine did not start")
        return "spark"

    monkeypatch.setattr(startup, "_started", launched)

    assert startup.started(made, SETTINGS) == "spark"
    assert (made.path(), made.is_wanted()) == (None, False)


def test_an_error_that_is_not_of_the_archive_is_raised_once(archive, monkeypatch):
    """Spark is not started twice where there is no archive, or where Java runs."""
    starts = []

    def launched(settings, options=""):
        starts.append(options)
        raise SetupError("no")

    monkeypatch.setattr(startup, "_started", launched)
    with pytest.raises(SetupError, match=r"^no$"):
        startup.started(archive, SETTINGS)

    assert starts == [""]


def test_the_maker_has_no_settings_of_the_program(archive, monkeypatch):
    """It runs beside the end of the program, which does not wait; it gives way to all others."""
    ran = {}
    monkeypatch.setenv("DSTREAM_MASTER", "spark://host:7077")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseZGC")
    monkeypatch.setattr(archives.subprocess, "run", lambda command, **options: ran.update(options, command=command))
    archive.make_beside()

    assert ran["command"][:3] == ["/bin/sh", "-c", 'nice -n 19 "$@" &']
    assert ran["command"][-4:] == ["-m", archives.MAKER, str(archive.folder), "key"]
    assert not {"DSTREAM_MASTER", "SPARK_SUBMIT_OPTS"} & {*ran["env"]}
    assert archive_maker.__name__ == archives.MAKER


def test_java_is_asked_once_for_its_version(tmp_path, monkeypatch):
    """A start waits for it."""
    script = tmp_path / "java"
    script.write_text(f"#!/bin/sh\necho x >> {tmp_path}/calls\necho 'openjdk version \"17.0.1\"' >&2\n")
    script.chmod(0o700)

    assert java.answer_of(str(script)) == java.answer_of(str(script)) == 'openjdk version "17.0.1"\n'
    assert (tmp_path / "calls").read_text() == "x\n"
