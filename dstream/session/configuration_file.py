"""The file `dstream.toml`: which one counts, whether it may be read, and where in it something stands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dstream.errors import ConfigurationError
from dstream.failures import shown

__all__ = ["ConfigurationFile", "find_file"]

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
        """Say where a setting stands, as the subject of a sentence."""
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
    except FileNotFoundError:
        return None
    while not os.path.lexists(path := os.path.join(folder, _NAME)):
        if folder == (folder := os.path.dirname(folder)):
            return None
    return path


def _read(path: str, *, is_named: bool) -> ConfigurationFile | None:
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            if not is_named:
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
