"""Java: what is found, and what is said on each system when there is none that will do."""

from __future__ import annotations

import os
import platform
import re
import shutil
from types import SimpleNamespace

import pytest

import dstream as ds
from dstream.engine.spark.session import java
from dstream.engine.spark.session.java import has_java_options
from dstream.errors import SetupError

NEW = "#!/bin/sh\necho 'openjdk version \"21.0.2\" 2024-01-16' >&2\n"
OLD = "#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n"
STAND_IN = "#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2\nexit 1\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Pretend to be a system that has these programs, and no other; not the user root, not conda."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "conda"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "other"})
    (tmp_path / "bin").mkdir()

    def having(**programs: str) -> None:
        for name, text in programs.items():
            (tmp_path / "bin" / name.replace("_", "-")).write_text(text or "#!/bin/sh\n")
            (tmp_path / "bin" / name.replace("_", "-")).chmod(0o700)

    return having


def refused():
    """Return what is said."""
    with pytest.raises(SetupError) as caught:
        java.find_java()
    return str(caught.value)


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("apt_get", "sudo apt-get install openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install java-21-openjdk-headless"),
        ("apk", "sudo apk add openjdk17-jre-headless"),
        ("pacman", "sudo pacman -S jre17-openjdk-headless"),
        ("zypper", "sudo zypper install java-17-openjdk-headless"),
        ("brew", 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix)/opt/openjdk@17"'),
    ],
)
def test_the_command_of_the_system_is_named(system, tool, command):
    """The one whose package manager is there."""
    system(**{tool: ""})

    assert refused() == (f"Spark needs Java 17 or newer and there is none on this machine. Install it with: {command}")


@pytest.mark.parametrize(("release", "version"), [("12", 17), ("13", 21), ("14.1", 21), ("", 17)])
def test_a_debian_gets_the_java_that_it_has(system, monkeypatch, release, version):
    """From 13 on there is no Java 17."""
    system(apt_get="")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_ID": release})

    assert refused().endswith(f"sudo apt-get install openjdk-{version}-jre-headless")


def test_root_needs_no_sudo(system, monkeypatch):
    """Containers often have none."""
    system(apt_get="")
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert refused().endswith("Install it with: apt-get install openjdk-17-jre-headless")


def test_conda_installs_it_itself(system, tmp_path):
    """In an environment of conda, its own command comes first."""
    system(apt_get="")
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)

    assert refused().endswith("Install it with: conda install -c conda-forge openjdk=17")


def test_a_system_that_nobody_knows_is_told_what_is_needed(system):
    """Without a command to give."""
    assert refused().endswith(f"Install a JRE 17 for {platform.system()} and set JAVA_HOME to it")


def test_the_stand_in_of_macos_is_no_java(system):
    """`/usr/bin/java` is there, and there is no Java behind it."""
    system(java=STAND_IN, brew="")

    assert refused().startswith("Spark needs Java 17 or newer and there is none on this machine. Install it with: brew")


def test_a_new_java_is_found(system, tmp_path):
    """With its path and its version."""
    system(java=NEW)

    assert java.find_java() == java.Java(str(tmp_path / "bin" / "java"), 21)


def test_a_java_that_is_too_old_is_named(system, tmp_path, monkeypatch):
    """If JAVA_HOME points to it, the message says so: installing another would not help."""
    system(java=OLD, dnf="")
    assert refused().startswith(
        f"Spark needs Java 17 or newer and {tmp_path}/bin/java is Java 8. Install it with: sudo dnf"
    )

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "is Java 8, to which JAVA_HOME points: unset JAVA_HOME or set it to a newer one." in refused()


def test_a_wrong_java_home_is_named(system, monkeypatch):
    """Spark would look nowhere else."""
    system(java=NEW)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    assert refused() == "JAVA_HOME is /nowhere, which has no bin/java. Set it to a Java 17 or unset it"


@pytest.fixture
def no_spark(monkeypatch):
    """Pretend that no session runs, and that `spark-submit` did not start this process."""
    if shutil.which("java", path=os.defpath) is None:
        pytest.skip("the real PATH decides whether a session runs already")
    monkeypatch.setattr("dstream.engine.spark.session.launch._session_of_the_user", lambda: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


@pytest.mark.usefixtures("no_spark")
def test_connect_refuses_before_anything_starts(system):
    """The error of the engine Spark arises in the call, alone: nothing else is shown before or behind it."""
    with pytest.raises(SetupError) as caught:
        ds.connect(engine="spark")

    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("master", [None, "local[2]"])
def test_plans_that_need_no_spark_need_no_java(system, master):
    """With the engine `auto` streams, collections and the context itself work without it."""
    with ds.connect(master, engine="auto", storage="memory:") as ctx:
        ctx.get_map("squares").update({n: n * n for n in range(4)})

        assert ctx.stream([3, 1]).sorted().to_list() == [1, 3]
        assert [list(part) for part in ctx.stream([3, 1], 2).partitions()] == [[3], [1]]
        assert ctx.stream([3, 1]).parallel(3).sorted().to_list() == [1, 3]
        assert ctx.get_map("squares").stream().map_to_int(lambda entry: entry.value).sum() == 14


NEEDY = {
    r"\.to_df\(\) needs Spark: DataFrames are tables of Spark": lambda ctx: ctx.stream([1]).map(str).to_df(),
    r"\.map\(str\) needs Spark: its settings are those of Spark": lambda ctx: (
        ctx.stream([1]).configure({"spark.sql.shuffle.partitions": "3"}).map(str).to_list()
    ),
}


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("plan", NEEDY)
def test_the_first_plan_that_needs_spark_asks_for_java(system, plan):
    """Its error names the plan, why it does not run in this process, and the command that installs Java."""
    system(dnf="")
    with ds.connect(engine="auto", storage="memory:") as ctx, pytest.raises(SetupError) as caught:
        NEEDY[plan](ctx)

    assert re.fullmatch(
        rf"the plan of {plan}\. Spark needs Java 17 or newer and there is none on this machine\. "
        r"Install it with: sudo dnf install java-21-openjdk-headless",
        str(caught.value),
    )


@pytest.mark.usefixtures("no_spark")
def test_what_has_no_plan_asks_for_java_alone(system):
    """The session of Spark, and a table of a collection."""
    with ds.connect(engine="auto", storage="memory:") as ctx:
        with pytest.raises(SetupError, match=r"^Spark needs Java 17"):
            _ = ctx.spark
        with pytest.raises(SetupError, match=r"^DataFrames are tables of Spark\. Spark needs Java 17"):
            ctx.get_map("squares", key_type=int, value_type=int).to_df()


@pytest.mark.usefixtures("no_spark")
def test_java_that_is_installed_later_is_found(system, monkeypatch):
    """A plan that needs Spark tries again, on the same context."""
    monkeypatch.setattr("dstream.engine.spark.session.launch.start", lambda settings, caches: Started())
    with ds.connect(engine="auto", storage="memory:") as ctx:
        with pytest.raises(SetupError):
            ctx.stream([1]).to_df()
        system(java=NEW)

        assert ctx.stream([1]).to_df() == ["on Spark"]


class Started:
    """An engine that answers every plan alike."""

    def submit(self, end):
        return SimpleNamespace(result=lambda: ["on Spark"])

    def close(self):
        pass


@pytest.mark.parametrize(
    "variable", ["SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_CONF_DIR"]
)
def test_java_options_of_the_user_are_seen_wherever_they_stand(tmp_path, monkeypatch, variable):
    """Ours beside theirs could be a second garbage collector, with which no JVM starts."""
    for name in ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert not has_java_options({"spark.driver.memory": "2g"})
    assert has_java_options({"spark.driver.extraJavaOptions": "-XX:+UseZGC"})

    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseZGC\n")
    monkeypatch.setenv(variable, str(tmp_path))
    assert has_java_options({})
