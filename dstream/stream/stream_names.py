"""Names that a stream does not have: what is meant by them. `elsewhere` holds the names of other libraries."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from dstream.stream.names_elsewhere import ELSEWHERE, OF_NUMBERS

__all__ = ["REDUCERS", "calls_of", "meant_by", "no_such_name", "plain"]

REDUCERS = (
    "grouping_by_to_icache",
    "grouping_by_to_imap",
    "processing_imap",
    "replacing",
    "sink_from",
    "to_file",
    "to_files",
    "to_icache",
    "to_ilist",
    "to_imap",
    "to_iset",
    "to_kafka",
    "to_logger",
    "to_nothing",
    "to_processor",
    "to_socket",
    "to_sql",
    "updating_imap",
)
"""The names of the package `reducers`, which streams do not import: a sink of the user's is as good as one of it."""

_CLOSE = 0.82
"""How alike a typing error and what was meant are; names that mean different things are less alike."""


def no_such_name(cls: type[Any], name: str, of_objects: type[Any]) -> str:
    """Say that streams have no attribute of this name, and which one is probably meant.

    Args:
        cls: the class of the stream.
        name: the name.
        of_objects: the class of streams of objects.
    """
    if _is_factory(cls, name):
        instead = _INSTEAD.get(name, "{}.{}(...)").format(cls.__name__, name)
        return f"{name}() makes a stream without this one: write {instead}"
    article = "an" if cls.__name__[0] in "AEIO" else "a"
    message = f"{article} {cls.__name__} has no {name!r}"
    meant = "" if name.startswith("_") else _of_a_stream(cls, name, of_objects)
    return f"{message}; use {meant}" if meant else message


def _is_factory(cls: type[Any], name: str) -> bool:
    found = next((vars(each)[name] for each in cls.__mro__ if name in vars(each)), None)
    return isinstance(found, staticmethod | classmethod) and not name.startswith("_")


_INSTEAD = {"concat": "{}.{}(a, b), or a + b", "empty": "{}.{}(), or first().is_empty() to ask whether this one is"}


def _of_a_stream(cls: type[Any], name: str, of_objects: type[Any]) -> str:
    """Return what is meant: a name of this type written otherwise, one from elsewhere, a typing error."""
    if issubclass(cls, of_objects):
        return meant_by(cls, name, {**_calls(), **ELSEWHERE})
    boxed = _written_otherwise(of_objects, name)
    if boxed and not hasattr(cls, boxed) and plain(name) not in OF_NUMBERS:
        return f"boxed().{boxed}"
    return meant_by(cls, name, {**_calls(), **ELSEWHERE, **OF_NUMBERS})


def _calls() -> dict[str, str]:
    from dstream import gatherers

    gathered = {plain(name): f"gather({name}(...))" for name in gatherers.__all__ if name.islower()}
    return calls_of("collect", "collect") | gathered


def calls_of(aggregate: str, write: str) -> dict[str, str]:
    """Return what to call where the name of a collector or of a reducer stands for a method, by plain names.

    Args:
        aggregate: the call that takes a collector.
        write: the one that takes a reducer.
    """
    import collectors

    aggregated = {plain(name): f"{aggregate}({name}(...))" for name in collectors.__all__}
    return aggregated | {plain(name): f"{write}({name}(...))" for name in REDUCERS}


def meant_by(cls: type[Any], name: str, elsewhere: Mapping[str, str]) -> str:
    """Return what a user of `cls` means by `name`, or nothing.

    Args:
        cls: a class that has no such name.
        name: the name.
        elsewhere: what stands for names of other libraries, by their `plain` form.
    """
    known = _written_otherwise(cls, name) or elsewhere.get(plain(name))
    return _misspelt(cls, name) if known is None else known


def plain(name: str) -> str:
    """Return a name without what libraries write differently: `reduceByKey` and `reduce_by_key` are one."""
    return name.replace("_", "").lower()


def _written_otherwise(cls: type[Any], name: str) -> str | None:
    """Return the name that a class writes with underscores: `flat_map` for `flatMap`."""
    return next((known for known in _names(cls) if plain(known) == plain(name)), None)


def _misspelt(cls: type[Any], name: str) -> str:
    snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return "".join(difflib.get_close_matches(snake_case, _names(cls), n=1, cutoff=_CLOSE))


def _names(cls: type[Any]) -> list[str]:
    return [known for known in dir(cls) if not known.startswith("_")]
