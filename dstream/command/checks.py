"""Quick checks of `dstream doctor`, without a start or a write."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

import dstream
from dstream.base.environment import VERSION, pip_install
from dstream.command.probe import Finding
from dstream.engine.spark.session import java as archives
from dstream.engine.spark.session.java import find_java, has_java_options
from dstream.engine.versions import requirement, requirements
from dstream.errors import SetupError
from dstream.session.configuration import Configuration

__all__ = ["class_archive", "extras", "java", "neighbours", "packages", "python", "settings"]


_EXTRAS = {
    "redis": ("redis", "for storage on redis://"),
    "obstore": ("object-store", "for storage on s3://, gs://, az://"),
    "sqlalchemy": ("sql", "for tables of databases"),
    "confluent-kafka": ("kafka", "for topics of Kafka"),
    "fastavro": ("avro", "for files of Avro"),
    "datasketches": ("sketches", "for quantiles and approx_count_distinct"),
}


def python() -> Finding:
    """Report the Python; dstream would not be installed on an old one."""
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def neighbours() -> Finding:
    """Check that a program which starts in this folder would not find modules of this folder instead of ours."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(dstream.__file__)))
    advice = ""
    for name in ("dstream", "collectors", "reducers", "sources"):
        for path in (f"{name}.py", os.path.join(name, "__init__.py")):
            if os.path.exists(path) and not os.path.realpath(path).startswith(os.path.realpath(home) + os.sep):
                seen = f"{path} in this folder hides {name!r} of dstream"
                if name == "dstream":
                    return Finding("dstream", "not ok", seen, "rename it")
                advice = f"{seen}: import dstream.{name} instead"
    return Finding("dstream", "ok", f"{VERSION} at {os.path.dirname(dstream.__file__)}", advice)


def packages() -> Iterator[Finding]:
    """Check the versions of the packages that dstream cannot do without."""
    for name, (oldest, too_new) in requirements().items():
        wanted = requirement(name)
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, "not ok", "not installed", f"pip install '{wanted}'")
            continue
        numbers = tuple(map(int, re.findall(r"\d+", installed)[:3]))
        fits = oldest <= numbers and (too_new is None or numbers < too_new)
        yield Finding(name, "ok", installed) if fits else Finding(name, "not ok", installed, f"pip install '{wanted}'")


def extras() -> Iterator[Finding]:
    """Report the packages that some operations need."""
    for name, (extra, purpose) in _EXTRAS.items():
        try:
            yield Finding(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Finding(name, "not checked", f"not installed, only needed {purpose}", pip_install(extra))


def java(engine: str) -> Finding:
    """Report the Java that Spark will run on."""
    if engine == "local":
        return Finding("Java", "not checked", "not needed, since the engine is local")
    try:
        found = find_java()
    except SetupError as error:
        seen, _, advice = str(error).partition(". ")
        # Small plans run without it.
        return Finding("Java", "not checked" if engine == "auto" else "not ok", seen, advice)
    by = " (JAVA_HOME)" if os.environ.get("JAVA_HOME") else ""
    return Finding("Java", "ok", f"{found.version or 'of unknown version'} at {found.path}{by}")


def class_archive(configuration: Configuration) -> Finding:
    """Report the archive of Java's classes that Spark starts from; without one it takes twice as long."""
    if not configuration["class_archive"]:
        return Finding("class archive", "ok", "not used, as the settings say")
    try:
        if has_java_options(configuration["config"]):
            return Finding("class archive", "ok", "not used, since Java has options of its own")
        found = archives.class_archive(find_java())
    except (SetupError, ImportError):
        return Finding("class archive", "not checked", "it needs Java and Spark")
    if found is None:
        return Finding("class archive", "ok", "not used, since this system has no place for one")
    path = found.path()
    if path is not None:
        return Finding("class archive", "ok", f"{path.stat().st_size / 2**20:.0f} MB at {path}")
    if not archives.is_private(found.folder):
        return Finding("class archive", "ok", f"not used, since others could write to {found.folder}, or above it")
    why = "could not be made lately" if found.failed_at() is not None else "made after the next use of Spark"
    return Finding("class archive", "ok", f"none yet: {why}, in {found.folder}")


def settings(configuration: Configuration) -> Iterator[Finding]:
    """Report the file that was read, the engine, and each other setting that is no default, with its origin."""
    yield Finding("dstream.toml", "ok", configuration.file or "none in this folder or above")
    for name, setting in configuration.settings.items():
        if setting.origin != "default" or name == "engine":
            choice = configuration.engine_choice() if name == "engine" else ""
            origin = configuration.origin_of(name) + (choice and f": {choice}")
            yield Finding(f"  {name}", "ok", f"{setting.shown}, {origin}")
