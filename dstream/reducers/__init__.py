"""Reducers: sinks into which a stream is reduced, such as collections, files, topics of Kafka, functions of your own.

`stream.collect(reducer)` writes in parallel where the items are, commits once, and returns the collection or folder
that was written. The contract is in `dstream.spi.sink`.

- `collections`: into maps, caches, lists and sets.
- `files`: `to_files` and `to_file`.
- `kafka`: `to_kafka`.
- `sql`: `to_sql`.
- `sockets`: `to_socket`.
- `functions`: into functions and processors of your own, into a log, and `replacing`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dstream.reducers.collections import (
        grouping_by_to_icache,
        grouping_by_to_imap,
        processing_imap,
        to_icache,
        to_ilist,
        to_imap,
        to_iset,
        updating_imap,
    )
    from dstream.reducers.files import to_file, to_files
    from dstream.reducers.functions import replacing, sink_from, to_logger, to_nothing, to_processor
    from dstream.reducers.kafka import to_kafka
    from dstream.reducers.sockets import to_socket
    from dstream.reducers.sql import to_sql

__all__ = [
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
]

_HOMES = {
    "grouping_by_to_icache": "dstream.reducers.collections",
    "grouping_by_to_imap": "dstream.reducers.collections",
    "processing_imap": "dstream.reducers.collections",
    "replacing": "dstream.reducers.functions",
    "sink_from": "dstream.reducers.functions",
    "to_file": "dstream.reducers.files",
    "to_files": "dstream.reducers.files",
    "to_icache": "dstream.reducers.collections",
    "to_ilist": "dstream.reducers.collections",
    "to_imap": "dstream.reducers.collections",
    "to_iset": "dstream.reducers.collections",
    "to_kafka": "dstream.reducers.kafka",
    "to_logger": "dstream.reducers.functions",
    "to_nothing": "dstream.reducers.functions",
    "to_processor": "dstream.reducers.functions",
    "to_socket": "dstream.reducers.sockets",
    "to_sql": "dstream.reducers.sql",
    "updating_imap": "dstream.reducers.collections",
}
"""The modules of the names; each is loaded when a name of it is requested."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            from dstream.suggestions.packages import no_such_name  # lazily: only a mistaken name needs it

            raise no_such_name("reducers", name, sys._getframe(1))
        # A name that the module has is found without a call of this function.
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
