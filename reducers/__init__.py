"""Where a stream's result goes: a distributed collection, files, a topic of Kafka, a function of your own.

`stream.collect(reducer)` writes in parallel where the items are, commits once, and returns what was written into. The
contract stands in `dstream.spi.sink`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reducers.collections import (
        grouping_by_to_icache,
        grouping_by_to_imap,
        processing_imap,
        to_icache,
        to_ilist,
        to_imap,
        to_iset,
        updating_imap,
    )
    from reducers.files import to_file, to_files
    from reducers.functions import replacing, sink_from, to_logger, to_nothing, to_processor
    from reducers.kafka import to_kafka
    from reducers.sockets import to_socket
    from reducers.sql import to_sql

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
    "grouping_by_to_icache": "reducers.collections",
    "grouping_by_to_imap": "reducers.collections",
    "processing_imap": "reducers.collections",
    "replacing": "reducers.functions",
    "sink_from": "reducers.functions",
    "to_file": "reducers.files",
    "to_files": "reducers.files",
    "to_icache": "reducers.collections",
    "to_ilist": "reducers.collections",
    "to_imap": "reducers.collections",
    "to_iset": "reducers.collections",
    "to_kafka": "reducers.kafka",
    "to_logger": "reducers.functions",
    "to_nothing": "reducers.functions",
    "to_processor": "reducers.functions",
    "to_socket": "reducers.sockets",
    "to_sql": "reducers.sql",
    "updating_imap": "reducers.collections",
}
"""The modules that have the names; each is loaded when one of them is asked for."""


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            from dstream.names.packages import no_such_name  # here: only a mistaken name needs it

            raise no_such_name("reducers", name, sys._getframe(1))
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
