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
    """The root of every error that dstream itself raises."""


class IllegalStateError(DStreamError, RuntimeError):
    """The object cannot do this now: a closed stream, a duplicate key, a second `build`."""


class CollectionDestroyedError(IllegalStateError):
    """The distributed collection behind this handle was destroyed."""


class JobExistsError(IllegalStateError):
    """A job of this name is running already."""


class JobTakenOverError(IllegalStateError):
    """Another driver has taken this job over, since this one could not be seen; nothing of this one's is committed."""


class NullElementError(DStreamError, TypeError):
    """A None stands where None is refused."""


class UnstableKeyError(DStreamError, TypeError):
    """A key cannot be grouped safely: its hash or its equality does not survive a process border."""


class NoSuchElementError(DStreamError, LookupError):
    """An empty `Optional` was asked for its value."""


class CacheNotExistsError(DStreamError, LookupError):
    """The cache was never configured."""


class SerializationError(DStreamError, TypeError):
    """A function or an item cannot travel to the workers, or a pipeline to a driver; the message names the obstacle."""


class UnsupportedError(DStreamError, NotImplementedError):
    """dstream does not do this here; the message names the operation and the engine."""


class SourceError(DStreamError, OSError):
    """A source cannot be read: it is missing, torn, or of another format than declared."""


class SourceUnavailableError(SourceError, ConnectionError):
    """The system behind a source does not answer now; a retry may help, and a job that has run does so."""


class SinkError(DStreamError, OSError):
    """A sink cannot store its input: its file, server or table is missing, full, or refuses it."""


class SinkTakenError(SinkError):
    """Another process is at work in the sink, such as a driver that was stopped and goes on; to try again may help."""


class SinkUnavailableError(SinkError, ConnectionError):
    """The system behind a sink does not answer now; a retry may help, and a job that has run does so."""


class SetupError(DStreamError, RuntimeError):
    """This machine lacks something that the engine needs, such as Java."""


class ConfigurationError(DStreamError, ValueError):
    """The environment or the file `dstream.toml` has an impossible setting; the message names the place."""


class CancelledError(DStreamError, RuntimeError):
    """A run was cancelled before it had a result."""


class EngineError(DStreamError, RuntimeError):
    """The engine failed outside the user's functions: a worker was killed, a disk is full."""


class ColumnsDifferError(EngineError):
    """With `columns="verify"`: columns gave something else than the functions do. To run it again changes nothing."""


class RemoteError(DStreamError, RuntimeError):
    """The failure of a job in another process, where its own exception cannot be made again here.

    Attributes:
        type_name: the module and name of its class.
        message: what it said.
        notes: what was noted on it: what happened, where, and what to do.
        traceback: how Python shows it there.
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
    """A function captures an object above 10 MB, which travels to every task."""


def __dir__() -> list[str]:
    return sorted(__all__)
