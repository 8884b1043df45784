"""`processor_of`: processors of a generator function, for those who do not want the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dstream.core.abstract_processor import AbstractProcessor
from dstream.spi.processor import Inbox, Processor
from dstream.stream.stream_arguments import function, kind_of

__all__ = ["processor_of"]
