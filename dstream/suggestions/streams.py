"""Hints for unknown names of streams and of the processor library."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from dstream.suggestions.libraries import ELSEWHERE, OF_NUMBERS

__all__ = ["calls_of", "closest", "meant_by", "no_such_name", "no_such_processor", "plain"]


_CLOSE = 0.82
"""The least similarity of a typing error and the intended name; names of other meanings are less similar."""


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
    # `getattr` would return the function in the place of its descriptor.
    found = next((vars(each)[name] for each in cls.__mro__ if name in vars(each)), None)
    return isinstance(found, staticmethod | classmethod) and not name.startswith("_")


_INSTEAD = {"concat": "{}.{}(a, b), or a + b", "empty": "{}.{}(), or first().is_empty() to ask whether this one is"}


def _of_a_stream(cls: type[Any], name: str, of_objects: type[Any]) -> str:
    """Return the intended name: one of this type written otherwise, one from elsewhere, a typing error."""
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
    """Return the call to write for the name of a collector or of a reducer used as a method, by plain names.

    Args:
        aggregate: the call that takes a collector.
        write: the one that takes a reducer.
    """
    from dstream import collectors, reducers

    aggregated = {plain(name): f"{aggregate}({name}(...))" for name in collectors.__all__}
    return aggregated | {plain(name): f"{write}({name}(...))" for name in reducers.__all__}


def meant_by(cls: type[Any], name: str, elsewhere: Mapping[str, str]) -> str:
    """Return the name that a user of `cls` intends by `name`, or nothing.

    Args:
        cls: a class that has no such name.
        name: the name.
        elsewhere: what stands for names of other libraries, by their `plain` form.
    """
    known = _written_otherwise(cls, name) or elsewhere.get(plain(name))
    return closest(name, _names(cls)) if known is None else known


def plain(name: str) -> str:
    """Return a name without the differences between libraries: `reduceByKey` and `reduce_by_key` are one."""
    return name.replace("_", "").lower()


def _written_otherwise(cls: type[Any], name: str) -> str | None:
    """Return the name that a class writes with underscores: `flat_map` for `flatMap`."""
    return next((known for known in _names(cls) if plain(known) == plain(name)), None)


def closest(name: str, known: Iterable[str]) -> str:
    """Return the name that a misspelt one means, or an empty string; `groupBy` is as close as `group_by`."""
    snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return "".join(difflib.get_close_matches(snake_case, list(known), n=1, cutoff=_CLOSE))


def _names(cls: type[Any]) -> list[str]:
    return [known for known in dir(cls) if not known.startswith("_")]


_LIKE_OURS = (
    *("accumulate", "accumulate_by_frame", "accumulate_by_key", "aggregate", "aggregate_by_key", "combine"),
    *("aggregate_to_session_window", "aggregate_to_sliding_window", "combine_by_key", "combine_to_sliding_window"),
    *("filter", "flat_map", "hash_join", "insert_watermarks", "map", "noop", "peek_input", "peek_output"),
    *("peek_snapshot", "write_buffered", "write_logger"),
)
_READ = {
    "read_map": "imap(name)",
    "read_list": "ilist(name)",
    "read_cache": "icache(name)",
    "read_files": "text_files(path)",
    "read_remote_map": "imap(name, storage=...)",
    "read_remote_list": "ilist(name, storage=...)",
    "read_remote_cache": "icache(name, storage=...)",
    "stream_map": "imap_journal(name)",
    "stream_cache": "icache_journal(name)",
    "stream_socket": "socket_lines(host, port)",
    "stream_files": "watch_files(folder)",
    "stream_remote_map": "imap_journal(name, storage=...)",
    "stream_remote_cache": "icache_journal(name, storage=...)",
    "stream_kafka": "kafka(topics, config)",
    "read_hdfs": 'text_files("hdfs://...")',
}
_WRITTEN = {
    "write_map": "to_imap(name)",
    "write_list": "to_ilist(name)",
    "write_cache": "to_icache(name)",
    "write_file": "to_files(folder)",
    "write_socket": "to_socket(host, port)",
    "write_kafka": "to_kafka(topic, config)",
    "write_remote_map": "to_imap(name, storage=...)",
    "write_remote_list": "to_ilist(name, storage=...)",
    "write_remote_cache": "to_icache(name, storage=...)",
    "merge_map": 'to_imap(name, merge=..., on_existing="merge")',
    "merge_remote_map": 'to_imap(name, merge=..., on_existing="merge", storage=...)',
    "update_map": "updating_imap(name, key, update)",
    "update_remote_map": "updating_imap(name, key, update, storage=...)",
    "write_hdfs": 'to_files("hdfs://...")',
}
_OF_STAGES = {
    "map_stateful": "map_stateful(create, fn)",
    "flat_map_stateful": "flat_map_stateful(create, fn)",
    "map_using_service_async": "map_concurrent(n, fn)",
    "sort": "sorted(key=...)",
}
_JET = {
    **{f"{name}_p": name for name in _LIKE_OURS},
    **{
        f"{start}_using_{of}_p": f"{start}_using"
        for start in ("map", "filter", "flat_map")
        for of in ("context", "service")
    },
    **{f"co_{name}_p": name for name in ("aggregate_by_key", "accumulate_by_key", "accumulate_by_frame")},
    "co_aggregate_to_sliding_window_p": "aggregate_to_sliding_window",
    "non_cooperative_p": "is_cooperative = False, an attribute of the processor",
    **{f"{name}_p": f"read({source})" for name, source in _READ.items()},
    **{f"{name}_p": f"write({sink})" for name, sink in _WRITTEN.items()},
    **{f"{name}_p": f"{method} of a stage, in a pipeline" for name, method in _OF_STAGES.items()},
}
_ELSEWHERE = {plain(name): offered for name, offered in _JET.items()}


def no_such_processor(library: ModuleType, name: str) -> str:
    """Say that the library has no such name, and which one is probably meant."""
    message = f"dstream.core.processors has no {name!r}"
    meant = "" if name.startswith("_") else meant_by(library, name, _ELSEWHERE)  # type: ignore[arg-type]  # A module is as good: what counts is `dir`.
    return f"{message}; use {meant}" if meant else message
