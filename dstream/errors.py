"""The one tree of errors that dstream raises.

Each class also derives from the built-in that Python users would expect, so `except LookupError`
catches a `NoSuchElementError`. The user's own exceptions are never wrapped: they arrive with their
own type and carry notes (see `dstream.failures`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "CacheNotExistsError",
    "CollectionDestroyedError",
    "ColumnsDifferError",
    "ConfigurationError",
    "DStreamError",
    "EngineError",
    "IllegalStateError",
    "JobExistsError",
    "JobTakenOverError",
    "LargeCaptureWarning",
    "NoSuchElementError",
    "NullElementError",
    "RemoteError",
    "SerializationError",
    "SetupError",
    "SinkError",
    "SinkTakenError",
    "SinkUnavailableError",
    "SourceError",
    "SourceUnavailableError",
    "UnstableKeyError",
    "UnsupportedError",
]


class DStreamError(Exception):
    """The base class of every error that dstream raises."""


class IllegalStateError(DStreamError, RuntimeError):
    """An operation that the state of the object does not allow: a closed stream, a duplicate key, a second `build`."""


class CollectionDestroyedError(IllegalStateError):
    """The distributed collection behind this handle was destroyed."""


class JobExistsError(IllegalStateError):
    """A job of this name is running already."""


class JobTakenOverError(IllegalStateError):
    """Another driver has taken this job over, since its heartbeat was missing; this driver commits nothing more."""


class NullElementError(DStreamError, TypeError):
    """A None where None is refused."""


class UnstableKeyError(DStreamError, TypeError):
    """A key without a stable hash and equality across processes."""


class NoSuchElementError(DStreamError, LookupError):
    """A request for the value of an empty `Optional`."""


class CacheNotExistsError(DStreamError, LookupError):
    """A cache that was never configured."""


class SerializationError(DStreamError, TypeError):
    """A function or an item that cannot be pickled for the workers, or a pipeline for a driver; it is named."""


class UnsupportedError(DStreamError, NotImplementedError):
    """An operation that is not implemented, or not on this engine; the message names both."""


class SourceError(DStreamError, OSError):
    """A source that cannot be read: it is missing, truncated, or of another format than declared."""


class SourceUnavailableError(SourceError, ConnectionError):
    """A system that a source reads is unavailable; a retry may succeed, and a job that has run before restarts."""


class SinkError(DStreamError, OSError):
    """A sink that cannot write its input: its file, server or table is missing, full, or refuses it."""


class SinkTakenError(SinkError):
    """Another process writes into the sink, such as a driver that was paused and has resumed; a retry may succeed."""


class SinkUnavailableError(SinkError, ConnectionError):
    """A system that a sink writes to is unavailable; a retry may succeed, and a job that has run before restarts."""


class SetupError(DStreamError, RuntimeError):
    """A requirement of the engine that is missing on this machine, such as Java."""


class ConfigurationError(DStreamError, ValueError):
    """An invalid setting in the environment or in the file `dstream.toml`; the message names its source."""


class CancelledError(DStreamError, RuntimeError):
    """A run that was cancelled before it had a result."""


class EngineError(DStreamError, RuntimeError):
    """A failure of the engine outside of the user's functions: a worker was killed, a disk is full."""


class ColumnsDifferError(EngineError):
    """A difference between columns and functions, found by `columns="verify"`; a retry fails in the same way."""


class RemoteError(DStreamError, RuntimeError):
    """The failure of a job in another process, whose own exception cannot be rebuilt in this one.

    Attributes:
        type_name: the module and name of its class.
        message: the message of the exception.
        notes: the notes on it: what happened, where, and what to do.
        traceback: the traceback as Python formats it.
    """

    def __init__(self, type_name: str, message: str, notes: Sequence[str] = (), traceback: str = "") -> None:
        super().__init__(type_name, message, tuple(notes), traceback)
        self.type_name = type_name
        self.message = message
        self.notes = tuple(notes)
        self.traceback = traceback

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}"


class LargeCaptureWarning(UserWarning):
    """A function that captures an object of more than 10 MB, which is sent to every task."""


def __dir__() -> list[str]:
    return sorted(__all__)
