"""Java: whether this machine has one that Spark runs on, and how to get it."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dstream.errors import SetupError

__all__ = ["Java", "answer_of", "find_java", "has_java_options", "spark_home"]

_OLDEST = 17
_NEEDED = f"Spark needs Java {_OLDEST} or newer"


@dataclass(frozen=True)
class Java:
    """The Java that Spark will run on; the version is None where it cannot be read."""

    path: str
    version: int | None


def has_java_options(config: Mapping[str, str]) -> bool:
    """Say whether somebody may have chosen options for the JVM: a second choice of a garbage collector would end it."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(spark_home()) / "conf")
    names = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
    return (
        any("JavaOptions" in name for name in config)
        or any(name in os.environ for name in names)
        or (folder / "spark-defaults.conf").exists()
    )


def spark_home() -> str:
    """Return the folder of the Spark that this process starts."""
    import pyspark

    return os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)


def find_java() -> Java:
    """Return the Java that Spark will find.

    Raises:
        SetupError: there is none, or it is too old; the message gives the command that installs one.
    """
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if home and not os.access(str(path), os.X_OK):
        raise SetupError(f"JAVA_HOME is {home}, which has no bin/java. Set it to a Java {_OLDEST} or unset it")
    answer = None if path is None else answer_of(path)
    if path is None or answer is None:
        raise SetupError(f"{_NEEDED} and there is none on this machine. {_advice()}")
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    version = int(found.group(1)) if found else None
    if version is not None and version < _OLDEST:
        where = ", to which JAVA_HOME points: unset JAVA_HOME or set it to a newer one" if home else ""
        raise SetupError(f"{_NEEDED} and {path} is Java {version}{where}. {_advice()}")
    return Java(path, version)


@functools.cache
def answer_of(java: str) -> str | None:
    """Return what `java -version` says; it is asked once.

    None if it is a stand-in without a Java behind it, as macOS has one.
    """
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{java} cannot be run: {error}. {_advice()}") from None
    answer = done.stderr + done.stdout
    return None if done.returncode and "version" not in answer else answer


def _advice() -> str:
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "Install it with: conda install -c conda-forge openjdk=17"
    for tool, command in _installers().items():
        if shutil.which(tool):
            return f"Install it with: {command}"
    return f"Install a JRE {_OLDEST} for {platform.system()} and set JAVA_HOME to it"


def _installers() -> dict[str, str]:
    sudo = "" if os.geteuid() == 0 else "sudo "
    debian = 21 if _is_new_debian() else 17
    home = '"$(brew --prefix)/opt/openjdk@17"'
    return {
        "apt-get": f"{sudo}apt-get install openjdk-{debian}-jre-headless",
        "dnf": f"{sudo}dnf install java-21-openjdk-headless",
        "apk": f"{sudo}apk add openjdk17-jre-headless",
        "pacman": f"{sudo}pacman -S jre17-openjdk-headless",
        "zypper": f"{sudo}zypper install java-17-openjdk-headless",
        # Homebrew puts it where nobody looks.
        "brew": f"brew install openjdk@17 && export JAVA_HOME={home}",
    }


def _is_new_debian() -> bool:
    """Say whether this is a Debian without Java 17: 13 has 21 and newer."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return False
    return system.get("ID") == "debian" and int(system.get("VERSION_ID", "0").partition(".")[0] or 0) >= 13
