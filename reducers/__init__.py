"""Where a stream's result goes: a distributed collection, files, a topic of Kafka, a function of your own.

`stream.collect(reducer)` writes in parallel where the items are, commits once, and returns what was written into. The
contract stands in `dstream.spi.sink`.
"""

import sys
from typing import TYPE_CHECKING, NoReturn

from reducers.file_sinks import to_files
from reducers.grouping import grouping_by_to_icache, grouping_by_to_imap
from reducers.into_processors import to_processor
from reducers.kafka_sinks import to_kafka
from reducers.lists import to_ilist
from reducers.maps import to_icache, to_imap
from reducers.one_file import to_file
from reducers.passing import sink_from, to_logger, to_nothing
from reducers.sets import to_iset
from reducers.socket_sink import to_socket
from reducers.sql_sink import to_sql
from reducers.updating import processing_imap, updating_imap
from reducers.writing import replacing

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


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # A type checker would take it for every name.

    def __getattr__(name: str) -> NoReturn:
        from dstream.spi.wrong_names import no_such_name  # here: only who mistakes a name needs it

        raise no_such_name("reducers", name, sys._getframe(1))
