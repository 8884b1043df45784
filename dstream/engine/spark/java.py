"""Java: whether this machine has one that Spark runs on, and how to get it."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess

from dstream.errors import SetupError

__all__ = ["check_java"]

_OLDEST = 17
_INSTALLERS = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless",
    "dnf": "sudo dnf install java-17-openjdk-headless",
    "apk": "sudo apk add openjdk17-jre-headless",
    "pacman": "sudo pacman -S jre17-openjdk-headless",
    "brew": "brew install openjdk@17",
    "winget": "winget install Microsoft.OpenJDK.17",
}


def check_java() -> None:
    """Make sure that Spark will find a Java that it runs on.

    Raises:
        SetupError: there is none, or it is too old; the message gives the command that installs one.
    """
    java = _find()
    if java is None:
        raise SetupError(f"Spark needs Java {_OLDEST} or newer and there is none on this machine. {_advice()}")
    version = _version(java)
    if version is not None and version < _OLDEST:
        raise SetupError(f"Spark needs Java {_OLDEST} or newer and {java} is Java {version}. {_advice()}")


def _find() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise SetupError(f"JAVA_HOME is {home}, which has no bin/java. Set it to a Java {_OLDEST} or unset it")
        return java
    return shutil.which("java")


@functools.cache
def _version(java: str) -> int | None:
    """Return the major version, or None if the text cannot be read."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise SetupError(f"{java} cannot be run: {error}. {_advice()}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def _advice() -> str:
    for tool, command in _INSTALLERS.items():
        if shutil.which(tool):
            return f"Install it with: {command}"
    return f"Install a JRE {_OLDEST} for {platform.system()} and set JAVA_HOME to it"
