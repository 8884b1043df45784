"""Names that the library of processors does not have: those of Jet, and what they are here."""

from __future__ import annotations

from types import ModuleType

from dstream.stream.stream_names import meant_by, plain

__all__ = ["no_such_processor"]

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
