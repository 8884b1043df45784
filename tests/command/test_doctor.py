"""`dstream doctor`: what works, what does not, and what to do; it leaves nothing behind."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import dstream as ds
from dstream.command import checks, doctor, probe
from dstream.command.probe import Finding
from dstream.engine import versions
from dstream.engine.spark.session.java import ClassArchive
from dstream.session.configuration import configured

ROOT = Path(__file__).parents[2]
DOCTOR = ("-m", "dstream", "doctor")


@pytest.fixture
def probes(monkeypatch):
    """Slow checks that find what a test says; without a word, that all is well."""
    said = {"storage": Finding("storage", "ok", "fine"), "spark": Finding("Spark", "ok", "fine")}

    class Told:
        def __init__(self, name: str) -> None:
            self.name = name

        def findings(self, seconds: float) -> list[Finding]:
            return [said[self.name]]

        def end(self) -> None:
            said.pop(self.name)

    monkeypatch.setattr(doctor, "Probe", Told)
    return said


def lines(ended):
    """Return what stands on each line, by the name of what was checked."""
    found = [line for line in ended.output.splitlines() if not line.startswith(" ")]
    return {line[13:29].strip(): (line[:13].strip(), line[29:]) for line in found}


def test_all_is_well_and_nothing_is_left(process, tmp_path):
    """On Spark: every line is ok, a function went to a worker and back, and no file was made."""
    ended = process(*DOCTOR, "--limit", "200")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    found = lines(type("Ended", (), {"output": ended.stdout}))
    assert {state for state, _ in found.values()} == {"ok"}
    assert found["storage"][1] == "dstream-data: 0 collections; writing and reading work"
    assert found["Spark"][1].startswith("4.3")
    assert "local[1]" in found["Spark"][1]
    assert found["workers"][1].startswith("Python 3.")
    assert "  master        local[1], from DSTREAM_MASTER" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_java_the_rest_is_checked(process, tmp_path):
    """Java is said to be missing, Spark is not checked, the storage is; the exit code says that something is wrong."""
    ended = process(*DOCTOR, JAVA_HOME="/nowhere")

    found = lines(type("Ended", (), {"output": ended.stdout}))
    assert found["Java"] == ("not ok", "JAVA_HOME is /nowhere, which has no bin/java")
    assert "-> Set it to a Java 17 or unset it" in ended.stdout
    assert (found["Spark"], found["workers"]) == (("not checked", "it needs Java"), ("not checked", "it needs Java"))
    assert found["storage"][0] == "ok"
    assert (ended.returncode, ended.stderr) == (1, "")


def test_the_local_engine_needs_no_java(command, monkeypatch, probes):
    """What is not needed is not checked, and nothing is wrong."""
    monkeypatch.setenv("DSTREAM_ENGINE", "local")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    ended = command("doctor")

    assert ended.exit_code == 0
    assert lines(ended)["Java"] == ("not checked", "not needed, since the engine is local")
    assert lines(ended)["Spark"] == ("not checked", "not needed, since the engine is local")


@pytest.mark.parametrize("limit", ["", "2"])
def test_auto_can_do_without_java(command, monkeypatch, probes, limit):
    """Small plans run without it: it is said how to install it, and nothing is wrong."""
    monkeypatch.setenv("DSTREAM_ENGINE", "auto")
    monkeypatch.setenv("DSTREAM_LOCAL_LIMIT", limit)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    ended = command("doctor")

    here = "plans of up to 2 s of estimated work" if limit else "small plans"
    assert f"  engine        auto, from DSTREAM_ENGINE: {here} in this process, others on Spark" in ended.output
    assert lines(ended)["Java"] == ("not checked", "JAVA_HOME is /nowhere, which has no bin/java")
    assert lines(ended)["Spark"] == ("not checked", "it needs Java")
    assert ("-> Set it to a Java 17 or unset it" in ended.output, ended.exit_code) == (True, 0)


def test_broken_settings_are_named(command, folder, probes):
    """The mistake is one line, and what depends on settings is not checked."""
    (folder / "dstream.toml").write_text('storrage = "x"')
    ended = command("doctor")

    assert ended.exit_code == 1
    assert lines(ended)["dstream.toml"][1].endswith("line 1, is no setting; did you mean storage?")
    assert lines(ended)["storage"] == ("not checked", "the settings are broken")


def test_settings_say_where_they_come_from(command, folder, monkeypatch, probes):
    """A password is not shown, and of Spark's settings the names."""
    (folder / "dstream.toml").write_text('engine = "local"\n[config]\nspark.key = "secret"')
    monkeypatch.setenv("DSTREAM_STORAGE", "redis://user:secret@host/0")
    ended = command("doctor")

    assert f"dstream.toml    {folder}/dstream.toml" in ended.output
    assert "  storage       redis://user:***@host/0, from DSTREAM_STORAGE" in ended.output
    assert "  config        spark.key, from dstream.toml" in ended.output
    assert "secret" not in ended.output


def test_a_module_that_hides_dstream_is_named(command, folder, probes):
    """A program that starts in this folder would find it instead of ours."""
    (folder / "dstream.py").write_text("")
    ended = command("doctor")

    assert ended.exit_code == 1
    assert lines(ended)["dstream"][1] == "dstream.py in this folder hides 'dstream' of dstream"


@pytest.mark.parametrize("name", ["sources.py", "collectors/__init__.py"])
def test_a_module_that_hides_a_short_name_is_named(command, folder, probes, name):
    """A program that starts in this folder writes the long one."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("")
    ended = command("doctor")
    short = name[:-3].partition("/")[0]

    assert lines(ended)["dstream"][0] == "ok"
    assert f"-> {name} in this folder hides {short!r} of dstream: import dstream.{short} instead" in ended.output


@pytest.mark.parametrize(("installed", "state"), [("3.4.9", "not ok"), ("3.5.1", "ok"), ("4.4.0", "not ok")])
def test_a_version_that_does_not_fit_is_named(monkeypatch, installed, state):
    """With the command that brings one that does."""
    monkeypatch.setattr(metadata, "version", lambda _: installed)
    advice = "" if state == "ok" else "pip install 'pyspark>=3.5,<4.4'"

    assert next(checks.packages()) == Finding("pyspark", state, installed, advice)


def test_what_is_not_installed_is_named(monkeypatch):
    """An extra is not needed; a package that is needed is."""

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert {finding.state for finding in checks.packages()} == {"not ok"}
    assert [(finding.state, finding.advice) for finding in checks.extras()] == [
        ("not checked", "pip install 'dstream-spark[redis]'"),
        ("not checked", "pip install 'dstream-spark[object-store]'"),
        ("not checked", "pip install 'dstream-spark[sql]'"),
        ("not checked", "pip install 'dstream-spark[kafka]'"),
        ("not checked", "pip install 'dstream-spark[avro]'"),
        ("not checked", "pip install 'dstream-spark[sketches]'"),
    ]


def test_versions_are_those_of_the_project():
    """What the doctor asks for is what the package declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [finding.advice.removeprefix("pip install ").strip("'") for finding in _all_missing()]

    assert set(wanted) <= set(declared)


def _all_missing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "version", lambda _: "0")
        patch.setattr(versions, "version", lambda: "0.0")  # the lowest of all are those of the oldest Spark
        return list(checks.packages())


def test_the_trial_of_a_storage_touches_nothing_else(storage, folder):
    """Collections stay as they are, and no file stands beside them afterwards."""
    storage.get_list("names").append("Ada")
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))

    assert probe._found("storage") == [
        Finding("storage", "ok", "dstream-data: 1 collections; writing and reading work")
    ]
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before


def test_the_trial_of_a_storage_without_folders_is_destroyed(folder, monkeypatch):
    """In such a storage it is a collection of its own, for a moment."""
    monkeypatch.setenv("DSTREAM_STORAGE", "memory:doctor")
    with ds.connect(engine="local") as ctx:
        ctx.get_list("names").append("Ada")

        assert probe._found("storage")[0].state == "ok"
        assert [each.name for each in ctx.collections()] == ["names"]


def test_a_storage_that_does_not_work_is_one_line(folder, monkeypatch):
    """Its own words, and no traceback."""
    (folder / "dstream-data").write_text("a file")

    (found,) = probe._found("storage")
    assert (found.state, found.seen) == ("not ok", f"storage is a folder, and {folder}/dstream-data is a file")


def test_workers_with_another_python_are_named(folder):
    """Functions would not travel between two versions."""
    found = probe._workers([("3.9.1", "/old/python", 8.0)])

    assert found.state == "not ok"
    assert found.advice.startswith("set PYSPARK_PYTHON to a Python 3.")


def test_a_slow_check_ends(folder):
    """What takes too long is ended with all that it started."""
    slow = probe.Probe("storage")

    assert slow.findings(0.001) == [Finding("storage", "not ok", "no answer in 0.001 s", "raise --limit if it is slow")]
    assert slow._process.returncode is not None


def test_a_check_that_dies_is_one_line(folder, monkeypatch):
    """The last line of what it wrote is shown."""
    monkeypatch.setattr(probe.sys, "executable", "/bin/false")

    assert probe.Probe("storage").findings(60)[0].seen == "the check ended unexpectedly: it said nothing"


def test_findings_survive_the_way_between_processes():
    """They travel as JSON."""
    finding = Finding("a", "not ok", "b", "c")

    assert Finding(*json.loads(json.dumps([finding]))[0]) == finding


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1?password=correct-horse",
        "redis://:correct-horse/x@127.0.0.1:1",
        "file://ada:correct-horse@host/a",
        "s3://ada:correct-horse@bucket/a",
    ],
)
@pytest.mark.parametrize("place", ["variable", "file"])
def test_a_storage_is_shown_without_its_password(folder, monkeypatch, url, place):
    """Neither where the settings stand, nor where the storage is tried, nor in the settings as an object."""
    if place == "variable":
        monkeypatch.setenv("DSTREAM_STORAGE", url)
    else:
        (folder / "dstream.toml").write_text(f'storage = "{url}"')
    settings = configured({})
    found = [*checks.settings(settings), *(Finding(*each) for each in probe._found("storage"))]

    assert "correct-horse" not in f"{found} {settings!r}"
    assert "***" in f"{found}"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive of classes that is not there, in a folder of the test, and a Java without options of its own."""
    archive = ClassArchive(tmp_path / "caches", "key")
    monkeypatch.setattr(checks, "has_java_options", lambda config: False)
    monkeypatch.setattr(checks, "find_java", lambda: None)
    monkeypatch.setattr(checks.archives, "class_archive", lambda java: archive)
    archive.folder.mkdir(mode=0o700)
    return archive


def of_classes():
    """Return what is said of the archive of classes."""
    found = checks.class_archive(configured({"engine": "spark"}))
    assert found.state == "ok"
    return found.seen


def test_an_archive_of_classes_is_shown(folder, archive, monkeypatch):
    """Where it stands, or why there is none; none is needed."""
    assert of_classes() == f"none yet: made after the next use of Spark, in {archive.folder}"
    (archive.folder / "key.failed").touch()
    assert of_classes() == f"none yet: could not be made lately, in {archive.folder}"
    (archive.folder / "key-0.jsa").touch(0o400)
    assert of_classes() == f"0 MB at {archive.folder}/key-0.jsa"
    archive.folder.chmod(0o777)
    assert of_classes() == f"not used, since others could write to {archive.folder}, or above it"
    monkeypatch.setenv("DSTREAM_CLASS_ARCHIVE", "0")
    assert of_classes() == "not used, as the settings say"


def test_options_of_java_of_the_user_leave_no_archive(folder, monkeypatch):
    """They may name one."""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseZGC")

    assert of_classes() == "not used, since Java has options of its own"
