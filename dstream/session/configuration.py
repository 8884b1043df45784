"""Configuration: arguments of `connect()`, then the environment, then the file `dstream.toml`.

All settings are looked up in this module. Each stores its origin, so that messages can name it, and `dstream doctor`
can show it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from dstream.base.memory import DEFAULT_BOUND, DEFAULT_BROADCAST
from dstream.base.showing import did_you_mean
from dstream.base.urls import shown_url
from dstream.errors import ConfigurationError
from dstream.failures import shown

__all__ = ["Configuration", "ConfigurationFile", "Setting", "configured", "find_file", "local_folder"]


_NAME = "dstream.toml"
_VARIABLE = "DSTREAM_CONFIG"
_INSTEAD = f"set {_VARIABLE} to its path to read it all the same, or to nothing to read none"


@dataclass(frozen=True)
class ConfigurationFile:
    """A file that was read."""

    path: str
    text: str
    values: Mapping[str, Any]

    def place(self, name: str) -> str:
        """Return the location of a setting, as the subject of a sentence."""
        sets = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
        for number, line in enumerate(self.text.splitlines(), start=1):
            if sets.match(line):
                return f"{name} in {self.path}, line {number},"
        return f"{name} in {self.path}"


def find_file(argument: str | os.PathLike[str] | None = None) -> ConfigurationFile | None:
    """Read the file that counts.

    That is the one of the argument, else the one that `DSTREAM_CONFIG` names, else the nearest from the current folder
    up. An empty path reads none.

    Raises:
        TypeError: the argument is no path.
        ConfigurationError: the file cannot be read, another user could have written it, or it is not TOML.
    """
    named = os.environ.get(_VARIABLE) if argument is None else _path_of(argument)
    path = _nearest() if named is None else os.path.abspath(named) if named else None
    return None if path is None else _read(path, is_named=named is not None)


def _path_of(argument: Any) -> str:
    path = os.fspath(argument) if isinstance(argument, os.PathLike) else argument
    if not isinstance(path, str):
        raise TypeError(f"file must be the path of a file of settings, not {shown(argument)}")
    return path


def _nearest() -> str | None:
    try:
        folder = os.getcwd()
    except FileNotFoundError:  # The working directory may have been removed.
        return None
    # A link that leads nowhere is an error, and the search must not pass it.
    while not os.path.lexists(path := os.path.join(folder, _NAME)):
        if folder == (folder := os.path.dirname(folder)):
            return None
    return path


def _read(path: str, *, is_named: bool) -> ConfigurationFile | None:
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            if not is_named:
                # The status of the open file, since another file may replace it, and the status of the link to it.
                _check_owner(path, os.fstat(file.fileno()), os.lstat(path))
            text = file.read()
        return ConfigurationFile(path, text, tomllib.loads(text))
    except OSError as error:
        instead = "" if is_named else f"; {_INSTEAD}"
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}{instead}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None


def _check_owner(path: str, *states: os.stat_result) -> None:
    """A file that someone else wrote could send data elsewhere, or let Spark run a program of theirs."""
    for state in states:
        if state.st_uid not in (os.geteuid(), 0):
            raise ConfigurationError(f"{path} belongs to another user and is not read; {_INSTEAD}")
    if states[0].st_mode & 0o002:
        raise ConfigurationError(f"{path} can be changed by every user and is not read; chmod o-w it, or {_INSTEAD}")


@dataclass(frozen=True)
class Setting:
    """A value and its origin: `"argument"`, a variable, the path of a file, `"default"`, or a reason: `"since ..."`."""

    value: Any
    origin: str

    def __repr__(self) -> str:
        """Write a setting without its secrets: of Spark's settings the names, of a URL no password."""
        return f"Setting({self.shown}, {'' if self.origin.startswith('since ') else 'from '}{self.origin})"

    @property
    def shown(self) -> str:
        """The value without its secrets."""
        if isinstance(self.value, Mapping):
            return ", ".join(self.value)
        if is_dataclass(self.value):  # Only the set fields of a `JobConfig`; its class is not imported for this.
            values = ((each.name, getattr(self.value, each.name)) for each in fields(self.value))
            return ", ".join(f"{name}={shown_url(str(value))}" for name, value in values if value is not None)
        return shown_url(str(self.value))


@dataclass(frozen=True)
class Configuration:
    """All settings by the names of the arguments of `connect()`, and the file that was read, if there is one."""

    settings: Mapping[str, Setting]
    file: str | None

    def __getitem__(self, name: str) -> Any:
        return self.settings[name].value

    def engine_reason(self) -> str:
        """Return the origin of the engine, unless it is the caller's, and its choice; in parentheses, or ""."""
        setting = self.settings["engine"]
        # The master is shown together with the engine.
        origin = "" if setting.origin in ("argument", "default", _OF_A_MASTER) else self.origin_of("engine")
        reasons = "; ".join(filter(None, (origin, self.engine_choice())))
        return reasons and f" ({reasons})"

    def origin_of(self, name: str) -> str:
        """Return the origin of a setting in words, such as `"from DSTREAM_ENGINE"`."""
        origin = self.settings[name].origin
        if origin == "default":
            return "the default"
        place = "dstream.toml" if origin == self.file else origin
        return place if place.startswith("since ") else f"from {place}"

    def engine_choice(self) -> str:
        """Return how the engine `"auto"` chooses for each plan; "" for others, which have no choice."""
        if self["engine"] != "auto":
            return ""
        limit = self["local_limit"]
        here = "small plans" if limit is None else f"plans of up to {limit:g} s of estimated work"
        return f"{here} in this process, others on Spark"


@dataclass(frozen=True)
class _Key:
    """A setting: its check, which takes the origin and the value; its variable; its default."""

    check: Callable[[str, Any], Any]
    variable: str | None
    default: Any = None


def configured(arguments: Mapping[str, Any], file: str | os.PathLike[str] | None = None) -> Configuration:
    """Look up every setting; an argument that is None counts as unset, and without a `file` the default one is read.

    Raises:
        TypeError, ValueError: an argument is invalid.
        ConfigurationError: a variable or the file is invalid; the message names its location.
    """
    found = find_file(file)
    in_file = {} if found is None else _settings_of(found)
    settings = {name: _looked_up(name, arguments.get(name), in_file) for name in _KEYS}
    if settings["engine"].value is None:
        settings["engine"] = _default_engine(settings)
    return Configuration(settings, found.path if found else None)


_OF_A_MASTER = "since a master is set"


def _default_engine(settings: Mapping[str, Setting]) -> Setting:
    """Return the engine of settings that name none: the one of each plan, unless something is Spark's."""
    if settings["master"].value is not None:
        return Setting("spark", _OF_A_MASTER)
    if settings["config"].value:
        return Setting("spark", "since settings of Spark are set")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return Setting("spark", "since spark-submit started this process")
    return Setting("spark", "since a session of Spark runs") if _has_session() else Setting("auto", "default")


def _has_session() -> bool:
    """Return whether a session of Spark runs in this process that dstream has not started."""
    if "pyspark.sql" not in sys.modules:
        return False
    from dstream.engine.spark.session import launch  # imported late: there is no session without PySpark

    return launch.has_session_of_the_user()


def _looked_up(name: str, argument: Any, in_file: Mapping[str, Setting]) -> Setting:
    key = _KEYS[name]
    if name == "config":
        return _merged(argument, in_file.get(name))
    if name == "job" and argument is not None and name in in_file:
        both = key.check(name, argument).over(in_file[name].value, is_unbounded=True)
        return Setting(both, f"argument and {in_file[name].origin}")
    if argument is not None:
        return Setting(key.check(name, argument), "argument")
    if key.variable is not None and (text := os.environ.get(key.variable)):
        return Setting(_checked(key, key.variable, text), key.variable)
    return in_file.get(name, Setting(key.default, "default"))


def _merged(argument: Any, in_file: Setting | None) -> Setting:
    """Return Spark's settings: the file's, overridden by the argument's."""
    if argument is None:
        return in_file or Setting({}, "default")
    argument_settings = _config("config", argument)
    if in_file is None:
        return Setting(argument_settings, "argument")
    return Setting({**in_file.value, **argument_settings}, f"argument and {in_file.origin}")


def _settings_of(file: ConfigurationFile) -> dict[str, Setting]:
    for name in file.values:
        if name not in _KEYS:
            raise ConfigurationError(f"{file.place(name)} is no setting{_meant(name)}")
    checked = {name: _in_file(file, name, value) for name, value in file.values.items()}
    if checked.get("pickle") == "trusted":
        raise ConfigurationError(
            f"{file.place('pickle')} may be 'restricted' or 'never'; "
            "a file cannot trust pickles, a program can: connect(pickle='trusted')"
        )
    if "storage" in checked:
        checked["storage"] = _beside(file.path, checked["storage"])
    return {name: Setting(value, file.path) for name, value in checked.items()}


def _beside(file: str, storage: str) -> str:
    """Return a storage whose path, if it is relative, begins at the folder of a file of settings."""
    from dstream.base.urls import SQLITE  # loaded with a file of settings, not with dstream

    scheme = SQLITE if storage.startswith(SQLITE) else ""
    path = local_folder(storage.removeprefix(scheme))
    return storage if path is None else scheme + os.path.join(os.path.dirname(file), path)


def _in_file(file: ConfigurationFile, name: str, value: Any) -> Any:
    if name != "job":
        return _checked(_KEYS[name], file.place(name), value)
    from dstream.session.job_config import job_table  # lazily: few programs configure all jobs

    job = job_table(file, value)
    folder = None if job.files_at is None else local_folder(job.files_at)
    return job if folder is None else replace(job, files_at=os.path.join(os.path.dirname(file.path), folder))


def _checked(key: _Key, origin: str, value: Any) -> Any:
    try:
        return key.check(origin, value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(str(error)) from None


def _meant(name: str) -> str:
    if name == "allowed":
        return ": classes are named by a program, connect(allowed=[...])"
    return "; " + (did_you_mean(name, _KEYS, show=str) or f"the settings are {', '.join(sorted(_KEYS))}")


def local_folder(storage: str) -> str | None:
    """Return the folder that a storage names by its path, or None if it is named by a URL."""
    # A path with a colon begins with a dot or a slash.
    if ":" in storage and not storage.startswith((".", "/")):
        return None
    return os.path.expanduser(storage)


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def check(origin: str, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{origin} must be one of {', '.join(choices)}, not {shown(value)}")
        return value

    return check


def _text(origin: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{origin} must be a text, not {shown(value)}")
    if not value:
        raise ValueError(f"{origin} must not be empty; leave it out for the default")
    return value


_LEVELS = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")


def _level(origin: str, value: Any) -> str:
    return _one_of(*_LEVELS)(origin, value.upper() if isinstance(value, str) else value)


def _yes_or_no(origin: str, value: Any) -> bool:
    """Return a choice; the variable, a string, is 1 or 0."""
    if origin.startswith("DSTREAM_"):
        return _one_of("0", "1")(origin, value) == "1"
    if not isinstance(value, bool):
        raise TypeError(f"{origin} must be True or False, not {shown(value)}")
    return value


def _storage(origin: str, value: Any) -> str:
    storage = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(storage, str):
        raise TypeError(f"{origin} must be a folder or a URL, as a str or a path, not {shown(value)}")
    if not storage:
        raise ValueError(
            f"{origin} must not be empty; leave it out for the folder dstream-data, or say '.' for this one"
        )
    return storage


def _limit(origin: str, value: Any) -> float:
    """Return a number of seconds; the value of a variable is a string of digits."""
    number = _number(value) if origin.startswith("DSTREAM_") else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not number >= 0:
        raise ValueError(f"{origin} must be a number of seconds, at least 0, not {shown(value)}")
    return float(number)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def _memory(origin: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"(\d+)\s*([kmg]?)b?", value.strip().lower()) if isinstance(value, str) else None
    if found is None or int(found.group(1)) == 0:
        raise ValueError(f"{origin} must be a number of bytes or a text such as '512m', not {shown(value)}")
    return int(found.group(1)) * _UNITS[found.group(2)]


def _config(origin: str, value: Any) -> dict[str, str]:
    """Return Spark's settings as strings."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{origin} must hold settings of Spark by name, not {shown(value)}")
    return {name: _spark_text(f"{name} in {origin}", each) for name, each in _flat(value)}


def _job(origin: str, value: Any) -> Any:
    from dstream.session.job_config import checked_job  # lazily: few programs configure all jobs

    return checked_job(origin, value)


def _flat(table: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values; in a file, `spark.a.b = 1` is a table in a table, and means the name."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _spark_text(origin: str, value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise TypeError(f"{origin} must be a text, a number or true or false, not {shown(value)}")
    return str(value).lower() if isinstance(value, bool) else str(value)  # Spark reads `true`, and not `True`.


_KEYS = {
    "master": _Key(_text, "DSTREAM_MASTER"),
    "engine": _Key(_one_of("spark", "local", "auto"), "DSTREAM_ENGINE"),
    "local_limit": _Key(_limit, "DSTREAM_LOCAL_LIMIT"),
    "columns": _Key(_one_of("auto", "off", "verify"), "DSTREAM_COLUMNS", "auto"),
    "config": _Key(_config, None),
    "storage": _Key(_storage, "DSTREAM_STORAGE", "dstream-data"),
    "pickle": _Key(_one_of("trusted", "restricted", "never"), "DSTREAM_PICKLE"),
    "durability": _Key(_one_of("process", "power"), "DSTREAM_DURABILITY", "process"),
    "worker_memory": _Key(_memory, "DSTREAM_WORKER_MEMORY", DEFAULT_BOUND),
    "broadcast_limit": _Key(_memory, "DSTREAM_BROADCAST_LIMIT", DEFAULT_BROADCAST),
    "class_archive": _Key(_yes_or_no, "DSTREAM_CLASS_ARCHIVE", True),
    "warm": _Key(_yes_or_no, "DSTREAM_WARM"),
    "log_level": _Key(_level, "DSTREAM_LOG", "OFF"),
    "progress": _Key(_yes_or_no, "DSTREAM_PROGRESS"),
    "job": _Key(_job, None),
}
