"""Java for Spark: its location and version, and the archive of classes that speeds up its start.

Java reads, checks and links some 20,000 classes before the first result. It can write them into a file when it ends,
and map that file when it starts again. The file belongs to one Java and to the jars of one Spark, and Java itself does
not use one that does not fit. It is code, so one that another user could have written is not used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dstream.base.records import record
from dstream.errors import SetupError

__all__ = ["MAKER", "ClassArchive", "Java", "answer_of", "class_archive", "find_java", "has_java_options", "spark_home"]


_OLDEST = 17
_NEEDED = f"Spark needs Java {_OLDEST} or newer"


@record(slots=False)
class Java:
    """The Java that Spark will run on; the version is None where it cannot be read."""

    path: str
    version: int | None


def has_java_options(config: Mapping[str, str]) -> bool:
    """Return whether options for the JVM may be set elsewhere: a second choice of a garbage collector would end it."""
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
    """Return the Java that Spark will use.

    Raises:
        SetupError: there is none, or it is too old; the message contains the command that installs one.
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
    """Return the output of `java -version`, cached.

    None if it is a stub without a Java installation, as on macOS.
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
        # Homebrew puts it into no default location.
        "brew": f"brew install openjdk@17 && export JAVA_HOME={home}",
    }


def _is_new_debian() -> bool:
    """Return whether this is a Debian without Java 17: 13 has 21 and newer."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return False
    return system.get("ID") == "debian" and int(system.get("VERSION_ID", "0").partition(".")[0] or 0) >= 13


MAKER = "dstream.session.class_archive"
"""The module that makes an archive, in a separate process."""

_FORM = "1"
"""The version of the archive format; older archives are not used."""
_FREE_BYTES = 2**30
_NEXT_TRIAL = 7 * 24 * 60 * 60.0
"""Seconds until an archive is tried again that could not be made."""
_NOT_USED = 30 * 24 * 60 * 60.0
"""Seconds after which an unused archive is removed, when another one is made."""
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
"""No warnings of an archive that does not fit: Java loads the classes then."""
_UNSAFE = re.compile(r"[^\w./+@~ -]")
"""Characters with a meaning of their own in an option of Java: a colon separates two archives."""


@record(slots=False)
class ClassArchive:
    """The location of the archive of a Java and a Spark, whether or not it exists.

    Attributes:
        folder: a folder of this user; it need not be there yet.
        key: what the archive belongs to.
    """

    folder: Path
    key: str

    def path(self) -> Path | None:
        """Return the archive; None if there is none that may be used.

        Its name contains its size: Java 17 dies of one that was cut off, as by a full disk.
        """
        if not is_private(self.folder):
            return None
        with suppress(OSError):
            for path in self.folder.glob(f"{self.key}-*.jsa"):
                found = path.lstat()
                if path.name == self.name_of(found.st_size) and _is_ours(found) and stat.S_ISREG(found.st_mode):
                    return path
        return None

    def name_of(self, size: int) -> str:
        """Return the name of an archive of `size` bytes."""
        return f"{self.key}-{size}.jsa"

    def options(self) -> str:
        """Return the options that let Java use the archive; nothing if there is none."""
        path = self.path()
        if path is None:
            return ""
        with suppress(OSError):
            # `unused` decides by the last use, and Java reads the file without leaving a trace.
            os.utime(path)
        return f'{_QUIET} "-XX:SharedArchiveFile={path}"'

    def is_wanted(self) -> bool:
        """Return whether to make the archive: it does not exist, its folder is private, and none failed recently."""
        if self.path() is not None or not is_private(self.folder) or self.failed_at() is not None:
            return False
        with suppress(OSError):
            return shutil.disk_usage(_nearest(self.folder)).free >= _FREE_BYTES
        return False

    def failed_at(self) -> float | None:
        """Return when the archive could not be made, if that is not long ago."""
        with suppress(OSError):
            found = (self.folder / f"{self.key}.failed").stat().st_mtime
            return found if time.time() - found < _NEXT_TRIAL else None
        return None

    def make_beside(self) -> None:
        """Make the archive in a process of low priority that is not waited for."""
        # `-P` and the folder `/`, so that no file of the user's shadows a module of ours or of Python's.
        command = [sys.executable, "-P", "-m", MAKER, str(self.folder), self.key]
        with suppress(OSError):
            subprocess.run(
                # The shell ends at once, so the maker is no child of this process, which would have to wait for it.
                ["/bin/sh", "-c", 'nice -n 19 "$@" &', "sh", *command],
                env={**_environment(), "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )

    def discard(self) -> None:
        """Remove the archive; its name is tried again only after several days."""
        path = self.path()
        if path is not None:
            with suppress(OSError):
                path.unlink()
                (self.folder / f"{self.key}.failed").touch(0o600)

    def unused(self) -> Iterator[Path]:
        """Yield old archives of other versions, and leftovers."""
        for path in self.folder.glob("*"):
            with suppress(OSError):
                if path.suffix == ".unfinished" or time.time() - path.stat().st_mtime > _NOT_USED:
                    yield path


def class_archive(java: Java) -> ClassArchive | None:
    """Return the archive for this Java and the Spark of this process; None if it cannot have one."""
    home = Path.home() if os.name == "posix" and "HOME" in os.environ else None
    if home is None or java.version is None:
        return None
    jars = Path(spark_home()) / "jars"
    folder = _caches(home) / "dstream" / "classes"
    try:
        key = _key(java, jars)
    except OSError:
        return None
    return None if _UNSAFE.search(str(folder)) else ClassArchive(folder, key)


def is_private(folder: Path) -> bool:
    """Return whether no other user can change the contents of a folder, whether or not it exists.

    It and every folder above it belong to this user or to root, and no other user can write there, except into sticky
    folders, such as `/tmp`.
    """
    with suppress(OSError):
        if folder.is_symlink() or (folder.exists() and not _is_ours(folder.stat())):
            return False
        nearest = _nearest(folder).resolve(strict=True)
        return all(map(_is_safe, (nearest, *nearest.parents)))
    return False


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _is_safe(folder: Path) -> bool:
    found = folder.stat()
    is_shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    return found.st_uid in (0, os.geteuid()) and not is_shared


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _caches(home: Path) -> Path:
    """Return the folder of this user's caches, whose contents programs could make again."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _key(java: Java, jars: Path) -> str:
    """Return the name of an archive for this Java and these jars."""
    files = sorted((entry.name, entry.stat()) for entry in os.scandir(jars))
    # An in-place update changes Java's output, or the sizes and times of the jars.
    facts: Sequence[object] = (
        _FORM,
        answer_of(java.path),
        os.path.realpath(java.path),
        str(jars),
        *((name, found.st_size, found.st_mtime_ns) for name, found in files),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _environment() -> dict[str, str]:
    """Return the environment without the variables that configure programs of dstream and Spark."""
    steering = ("DSTREAM_", "PYSPARK_", "PYTHON", "SPARK_SUBMIT_OPTS")
    return {name: value for name, value in os.environ.items() if not name.startswith(steering)}
