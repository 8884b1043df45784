"""Settings: arguments stand over the environment, which stands over the file; each says where it comes from."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dstream as ds
from dstream.engine.spark.session import launch
from dstream.errors import ConfigurationError
from dstream.session import configuration
from dstream.session.configuration import Setting, configured


def written(folder, text):
    """Write the file; return its path."""
    (folder / "dstream.toml").write_text(text)
    return str(folder / "dstream.toml")


def state_of(owner):
    """Return the state of a file that belongs to a user."""
    return os.stat_result((0o100664, 0, 0, 1, owner, 0, 20, 0, 0, 0))


def test_without_a_word_the_defaults_hold(folder):
    """Nothing is given, nothing is set, no file is there."""
    found = configured({})

    assert found.file is None
    assert {setting.origin for setting in found.settings.values()} == {"default"}
    assert (found["engine"], found["storage"], found["log_level"]) == ("auto", "dstream-data", "OFF")


@pytest.mark.parametrize(
    ("arguments", "text", "variables", "engine", "origin"),
    [
        ({}, "", {}, "auto", "default"),
        ({"storage": "memory:", "worker_memory": "1g", "config": {}}, "", {}, "auto", "default"),
        ({"master": "local[2]"}, "", {}, "spark", "since a master is set"),
        ({"master": "sc://host:15002"}, "", {}, "spark", "since a master is set"),
        ({}, 'master = "yarn"', {}, "spark", "since a master is set"),
        ({}, "", {"DSTREAM_MASTER": "local"}, "spark", "since a master is set"),
        ({"config": {"spark.a": "b"}}, "", {}, "spark", "since settings of Spark are set"),
        ({}, "[config]\nspark.a = 1", {}, "spark", "since settings of Spark are set"),
        ({}, "", {"PYSPARK_GATEWAY_PORT": "1"}, "spark", "since spark-submit started this process"),
        ({"engine": "auto", "master": "local[2]"}, "", {}, "auto", "argument"),
        ({"master": "local[2]"}, "", {"DSTREAM_ENGINE": "local"}, "local", "DSTREAM_ENGINE"),
    ],
)
def test_the_engine_is_spark_where_something_is_of_spark(
    folder, monkeypatch, arguments, text, variables, engine, origin
):
    """A master, settings of Spark, or a process of spark-submit; what is said of the engine stands over all of them."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    written(folder, text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert configured(arguments).settings["engine"] == Setting(engine, origin)


@pytest.mark.parametrize(("is_ours", "engine"), [(False, "spark"), (True, "auto")])
def test_a_session_of_the_user_makes_the_engine_spark(folder, monkeypatch, is_ours, engine):
    """One that another context has started is no reason: that context may have a plan that needs it."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(launch, "_session_of_the_user", object)
    monkeypatch.setattr(launch, "_running", object() if is_ours else None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", ModuleType("pyspark.sql"))

    assert configured({})["engine"] == engine


def test_a_session_on_a_server_is_the_users(monkeypatch):
    """This process starts none there, also if it has started Spark here."""
    theirs = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    monkeypatch.setattr(launch, "_session_of_the_user", theirs)
    monkeypatch.setattr(launch, "_running", object())

    assert launch.has_session_of_the_user()


def test_a_reason_of_the_engine_reads_as_one(folder, monkeypatch):
    """In the settings, and where a context shows them; a master is shown beside the engine anyway."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    of_config = configured({"config": {"spark.a": "b"}})
    assert repr(of_config.settings["engine"]) == "Setting(spark, since settings of Spark are set)"
    assert of_config.engine_reason() == " (since settings of Spark are set)"
    assert configured({"master": "local"}).engine_reason() == ""

    monkeypatch.setenv("DSTREAM_ENGINE", "auto")
    reason = " (from DSTREAM_ENGINE; small plans in this process, others on Spark)"
    assert configured({}).engine_reason() == reason


def test_arguments_stand_over_variables_and_these_over_the_file(folder, monkeypatch):
    """One setting is taken from each; a variable without a text counts as none."""
    path = written(folder, 'master = "local[1]"\nengine = "local"\ndurability = "power"\nlog_level = "WARN"')
    monkeypatch.setenv("DSTREAM_MASTER", "local[2]")
    monkeypatch.setenv("DSTREAM_ENGINE", "spark")
    monkeypatch.setenv("DSTREAM_LOG", "")
    found = configured({"master": "local[3]"}).settings

    assert found["master"] == Setting("local[3]", "argument")
    assert found["engine"] == Setting("spark", "DSTREAM_ENGINE")
    assert found["durability"] == Setting("power", path)
    assert found["log_level"] == Setting("WARN", path)


@pytest.mark.parametrize(
    ("variable", "name", "text", "value"),
    [
        ("DSTREAM_STORAGE", "storage", "memory:", "memory:"),
        ("DSTREAM_PICKLE", "pickle", "trusted", "trusted"),
        ("DSTREAM_DURABILITY", "durability", "power", "power"),
        ("DSTREAM_WORKER_MEMORY", "worker_memory", "1g", 2**30),
        ("DSTREAM_BROADCAST_LIMIT", "broadcast_limit", "64m", 2**26),
        ("DSTREAM_LOCAL_LIMIT", "local_limit", "0.5", 0.5),
        ("DSTREAM_COLUMNS", "columns", "off", "off"),
        ("DSTREAM_CLASS_ARCHIVE", "class_archive", "0", False),
        ("DSTREAM_WARM", "warm", "1", True),
        ("DSTREAM_LOG", "log_level", "info", "INFO"),
    ],
)
def test_every_variable_sets_its_setting(folder, monkeypatch, variable, name, text, value):
    """The value is in its one form, and names the variable."""
    monkeypatch.setenv(variable, text)

    assert configured({}).settings[name] == Setting(value, variable)


def test_connect_looks_settings_up(folder):
    """The engine and the storage of a context are those of the nearest file above; paths are relative to it."""
    written(folder, 'engine = "local"\nstorage = "data/here"')
    (folder / "a" / "b").mkdir(parents=True)
    os.chdir(folder / "a" / "b")
    with ds.connect() as ctx:
        ctx.get_list("names").append("Ada")

        assert ctx.engine == "local"
        assert ctx.running_storage().url == str(folder / "data" / "here")
    assert (folder / "data" / "here" / "names").is_dir()


def test_configuration_of_a_file_of_sqlite_is_relative_to_it_too(folder):
    """The path behind `sqlite:` begins at the folder of the file, as that of a folder does."""
    written(folder, 'engine = "local"\nstorage = "sqlite:data/here.db"')
    with ds.connect() as ctx:
        assert ctx.running_storage().url == f"sqlite:{folder / 'data' / 'here.db'}"


def test_the_nearest_file_counts_alone(folder):
    """A file further up is not read, not even for what the nearer one leaves out."""
    written(folder, 'engine = "local"')
    (folder / "a").mkdir()
    near = written(folder / "a", 'master = "local[1]"')
    os.chdir(folder / "a")

    assert (configured({}).file, configured({})["engine"]) == (near, "spark")


def test_settings_of_spark_are_merged_one_by_one(folder):
    """Those of the argument stand over those of the file; a name with dots needs no quotes there."""
    path = written(folder, '[config]\nspark.ui.enabled = true\n"spark.task.cpus" = 2\nspark.a = "file"')
    found = configured({"config": {"spark.a": "argument"}}).settings["config"]

    assert found.value == {"spark.ui.enabled": "true", "spark.task.cpus": "2", "spark.a": "argument"}
    assert found.origin == f"argument and {path}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\nmasster = "x"', "masster in {path}, line 2, is no setting; did you mean master?"),
        (
            "color = 1",
            "color in {path}, line 1, is no setting; the settings are broadcast_limit, class_archive,",
        ),
        (
            "allowed = []",
            "allowed in {path}, line 1, is no setting: classes are named by a program, connect(allowed=[...])",
        ),
        ('engine = "flink"', "engine in {path}, line 1, must be one of spark, local, auto, not 'flink'"),
        ("master = 4", "master in {path}, line 1, must be a text, not 4"),
        (
            'worker_memory = "much"',
            "worker_memory in {path}, line 1, must be a number of bytes or a text such as '512m'",
        ),
        ("local_limit = true", "local_limit in {path}, line 1, must be a number of seconds, at least 0, not True"),
        ('local_limit = "2"', "local_limit in {path}, line 1, must be a number of seconds"),
        ("worker_memory = true", "worker_memory in {path}, line 1, must be a number of bytes"),
        ("storage = 5", "storage in {path}, line 1, must be a folder or a URL"),
        ("config = 5", "config in {path}, line 1, must hold settings of Spark by name, not 5"),
        (
            "[config]\nspark.a = [1]",
            "spark.a in config in {path}, line 1, must be a text, a number or true or false, not [1]",
        ),
        ('log_level = "LOUD"', "log_level in {path}, line 1, must be one of OFF, FATAL, ERROR, WARN, INFO, DEBUG"),
        ('pickle = "trusted"', "pickle in {path}, line 1, may be 'restricted' or 'never'; a file cannot trust pickles"),
        ("engine = ", "{path} is not valid TOML: Invalid value (at "),
        ("engine = '\x00'", "{path} is not valid TOML: "),
    ],
)
def test_a_mistake_in_the_file_names_its_place(folder, text, message):
    """Also if the argument would stand over it."""
    path = written(folder, text)

    with pytest.raises(ConfigurationError, match=f"^{re.escape(message.format(path=path))}"):
        configured({"engine": "local", "master": "local[1]", "storage": "memory:"})


def test_a_mistake_in_a_variable_names_it(folder, monkeypatch):
    """The message says what it may be."""
    monkeypatch.setenv("DSTREAM_ENGINE", "flink")

    with pytest.raises(ConfigurationError, match=r"^DSTREAM_ENGINE must be one of spark, local, auto, not 'flink'$"):
        ds.connect()

    monkeypatch.delenv("DSTREAM_ENGINE")
    monkeypatch.setenv("DSTREAM_LOCAL_LIMIT", "long")
    with pytest.raises(
        ConfigurationError, match=r"^DSTREAM_LOCAL_LIMIT must be a number of seconds, at least 0, not '"
    ):
        ds.connect()


@pytest.mark.parametrize(("text", "limit"), [("2", 2.0), ("0", 0.0), ("inf", math.inf)])
def test_the_limit_of_work_in_this_process_is_one_number(folder, text, limit):
    """In the file it is an int or a float; all forms give the same float."""
    written(folder, f"local_limit = {text}")

    assert configured({})["local_limit"] == configured({"local_limit": limit})["local_limit"] == limit
    assert type(configured({})["local_limit"]) is float


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"engine": "flink"}, "^engine must be one of spark, local, auto, not 'flink'$"),
        (
            {"log_level": "LOUD"},
            "^log_level must be one of OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE, ALL, not 'LOUD'$",
        ),
        ({"log_level": 3}, "^log_level must be one of"),
        ({"pickle": "yes"}, "^pickle must be one of trusted, restricted, never, not 'yes'$"),
        ({"durability": "disk"}, "^durability must be one of process, power, not 'disk'$"),
        ({"worker_memory": 0}, "^worker_memory must be a number of bytes"),
        ({"worker_memory": "0m"}, "^worker_memory must be a number of bytes"),
        ({"local_limit": -1}, "^local_limit must be a number of seconds, at least 0, not -1$"),
        ({"local_limit": math.nan}, "^local_limit must be a number of seconds, at least 0, not nan$"),
        ({"local_limit": "2"}, "^local_limit must be a number of seconds, at least 0, not '2'$"),
        ({"master": ""}, "^master must not be empty"),
        ({"master": 4}, "^master must be a text, not 4$"),
        ({"config": ["a"]}, "^config must hold settings of Spark by name"),
        ({"config": {"spark.a": None}}, "^spark.a in config must be a text, a number or true or false, not None$"),
    ],
)
def test_a_mistake_in_an_argument_is_refused_at_the_call(folder, argument, message):
    """It is a ValueError or a TypeError, as for every function, and no error of a configuration."""
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        ds.connect(**argument)

    assert not isinstance(caught.value, ConfigurationError)


def test_a_file_that_another_user_wrote_is_not_read(folder, monkeypatch):
    """It could send data elsewhere; the message says how to read it all the same."""
    written(folder, 'engine = "local"')
    monkeypatch.setattr(configuration.os, "geteuid", lambda: 12345)
    monkeypatch.setattr(configuration.os, "fstat", lambda _: state_of(777))
    with pytest.raises(
        ConfigurationError, match="belongs to another user and is not read; set DSTREAM_CONFIG to its path"
    ):
        configured({})

    monkeypatch.setenv("DSTREAM_CONFIG", "dstream.toml")
    assert configured({})["engine"] == "local"
    monkeypatch.setenv("DSTREAM_CONFIG", "")
    assert configured({}).file is None


@pytest.mark.parametrize("owner", [0, 12345])
def test_a_file_of_root_or_of_ours_is_read(folder, monkeypatch, owner):
    """Root can change every file anyway."""
    written(folder, 'engine = "local"')
    state = state_of(owner)
    monkeypatch.setattr(configuration.os, "geteuid", lambda: 12345)
    monkeypatch.setattr(configuration.os, "fstat", lambda _: state)
    monkeypatch.setattr(configuration.os, "lstat", lambda _: state)

    assert configured({})["engine"] == "local"


def test_a_link_that_another_user_made_is_not_followed(folder, monkeypatch):
    """The file may be ours, and yet not meant for this folder."""
    written(folder, 'engine = "local"')
    monkeypatch.setattr(configuration.os, "lstat", lambda _: state_of(777))

    with pytest.raises(ConfigurationError, match="belongs to another user"):
        configured({})


def test_a_file_that_everyone_can_change_is_not_read(folder):
    """The message says which command helps."""
    os.chmod(written(folder, 'engine = "local"'), 0o666)

    with pytest.raises(ConfigurationError, match="can be changed by every user and is not read; chmod o-w it, or set"):
        configured({})


@pytest.mark.parametrize("make", ["mkdir", "nothing"])
def test_a_file_that_cannot_be_read_is_an_error(folder, monkeypatch, make):
    """A folder of that name, or a file that DSTREAM_CONFIG names and that is not there."""
    if make == "mkdir":
        (folder / "dstream.toml").mkdir()
    else:
        monkeypatch.setenv("DSTREAM_CONFIG", "nowhere.toml")

    with pytest.raises(ConfigurationError, match=r"cannot be read: (Is a directory|No such file)"):
        configured({})


def test_the_file_of_the_argument_stands_over_the_one_of_the_variable(folder, monkeypatch):
    """It counts alone; the nearest file is not read, and an empty path reads none."""
    path = written(folder, 'engine = "local"')
    (folder / "jobs.toml").write_text('master = "local[1]"')
    monkeypatch.setenv("DSTREAM_CONFIG", path)
    found = configured({}, Path("jobs.toml"))

    assert (found.file, found["master"], found["engine"]) == (str(folder / "jobs.toml"), "local[1]", "spark")
    assert configured({}, "").file is None


def test_connect_reads_the_file_of_its_argument(folder):
    """Paths of storages are relative to that file."""
    (folder / "team").mkdir()
    (folder / "team" / "jobs.toml").write_text('engine = "local"\nstorage = "data"')
    with ds.connect(file="team/jobs.toml") as ctx:
        assert ctx.engine == "local"
        assert ctx.running_storage().url == str(folder / "team" / "data")


@pytest.mark.parametrize(
    ("file", "kind", "message"),
    [
        ("nowhere.toml", ConfigurationError, r"/nowhere.toml cannot be read: No such file or directory$"),
        ("jobs.toml", ConfigurationError, r"jobs.toml, line 1, is no setting; did you mean master\?$"),
        (5, TypeError, "^file must be the path of a file of settings, not 5$"),
        (True, TypeError, "^file must be the path of a file of settings, not True$"),
    ],
)
def test_a_mistake_in_the_file_of_the_argument_is_refused_at_the_call(folder, file, kind, message):
    """The message names the path, the line, or the argument."""
    (folder / "jobs.toml").write_text('masster = "x"')

    with pytest.raises(kind, match=message):
        ds.connect(engine="local", file=file)


def test_a_folder_that_is_gone_has_no_file(folder):
    """A program may run where its folder was removed."""
    (folder / "gone").mkdir()
    os.chdir(folder / "gone")
    (folder / "gone").rmdir()

    assert configured({}).file is None


def test_settings_are_the_arguments_of_connect(folder):
    """A new argument takes its place here; classes stay with programs."""
    assert {*inspect.signature(ds.connect).parameters} == {*configured({}).settings, "allowed", "file"}
