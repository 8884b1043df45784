"""Transport of a user's exception, with its own type, from a worker to the driver.

Spark transports only the text of an exception. So the worker raises an exception whose text contains the pickled
original, its cause, and the facts of the failure, from which the driver restores it.

Such a text may quote data as well, and unpickling runs code. So a worker signs its data with a secret that its task
receives from the driver, and the driver unpickles nothing else.
"""

from __future__ import annotations

import base64
import hmac
import pickle
import re
import secrets
import traceback
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from dstream.base.by_value import dumps_by_value
from dstream.errors import EngineError
from dstream.failures import MISSING, Failure, attach, forget, known_of, origin_of, shown
from dstream.failures.account import arguments_of, rebuilt, state_of

__all__ = ["SECRET", "WorkerFailure", "as_text", "from_worker", "raise_to_driver"]


SECRET = secrets.token_bytes(32)
"""The secret of this process as a driver, which it passes to its tasks; unused in a worker."""

_MARK = "dstream-failure:"
_PATTERN = re.compile(_MARK + r"([0-9a-f]{64}):([A-Za-z0-9+/=]+)")
_LONGEST_TRACEBACK = 20_000
_LARGEST_ITEM = 100_000
_MOST_CAUSES = 5


class WorkerFailure(Exception):
    """Exception with a pickled exception in its text."""


@dataclass(frozen=True, slots=True)
class _Packed:
    """Serialized form of an exception.

    Attributes:
        content: its type, arguments and attributes, pickled.
        members: the exceptions of an `ExceptionGroup`.
        cause: the exception that it was raised from.
    """

    content: bytes
    notes: list[str]
    known: Failure | None
    members: tuple[_Packed, ...] = ()
    cause: _Packed | None = None


def raise_to_driver(error: Exception | SystemExit, secret: bytes) -> NoReturn:
    """Raise, on a worker, an exception that the driver with the same secret turns into `error` again."""
    raise WorkerFailure(as_text(error, secret)) from None


def as_text(error: Exception | SystemExit, secret: bytes) -> str:
    """Return a string that `from_worker` converts back to `error`, and remove its facts in this process."""
    if isinstance(error, WorkerFailure):  # It was sent by an earlier task.
        return str(error)
    # The end of a long traceback is more useful than its beginning.
    text = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    known = replace(known_of(error) or Failure(None), remote_traceback=text, origin=origin_of(error))
    packed = replace(_packed(error, _MOST_CAUSES), known=_light(known))
    forget(error)  # A worker is reused, and the exception may be an object of a module that is raised again.
    data = base64.b64encode(dumps_by_value(packed)).decode("ascii")
    return f"{_MARK}{_signature(data, secret)}:{data}"


def from_worker(text: str, secret: bytes) -> BaseException | None:
    """Return the exception that a worker raised and signed with the secret, found in the text of Spark's, or None."""
    for signature, data in _PATTERN.findall(text):
        # A message of Spark's may quote an item that looks like a failure: its pickle is never loaded.
        if hmac.compare_digest(signature, _signature(data, secret)):
            return _unpacked(pickle.loads(base64.b64decode(data)))
    return None


def _signature(data: str, secret: bytes) -> str:
    return hmac.digest(secret, data.encode("ascii"), "sha256").hex()


def _packed(error: BaseException, causes: int) -> _Packed:
    members = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    known = known_of(error)
    return _Packed(
        _content(error),
        list(getattr(error, "__notes__", ())),
        None if known is None else _light(known),
        tuple(_packed(member, causes) for member in members),
        None if error.__cause__ is None or causes == 0 else _packed(error.__cause__, causes - 1),
    )


def _content(error: BaseException) -> bytes:
    args, state = arguments_of(error), state_of(error)
    if isinstance(error, BaseExceptionGroup):
        args = (error.message,)  # Its members travel one by one.
    described = f"{type(error).__qualname__}: {error} (this exception cannot be pickled)"
    # From the most to the least faithful form: the first that can be pickled and unpickled is sent.
    candidates: tuple[tuple[Any, ...], ...] = (
        (type(error), args, state),
        (type(error), args, {}),
        (None, error, state),  # Created in C by a class without a constructor, as in pydantic.
        (type(error), tuple(map(shown, args)), {}),
    )
    for candidate in candidates:
        try:
            data: bytes = dumps_by_value(candidate)
            # Pickling succeeds for many classes that cannot be unpickled, which is detected only here.
            _made(*pickle.loads(data))
        except Exception:
            continue
        return data
    return dumps_by_value((EngineError, (described,), {}))


def _light(known: Failure) -> Failure:
    """Leave out parts too large to travel in an exception's text, or that cannot; keep the text of the item instead."""
    inner = None if known.inner is None else _light(known.inner)
    account = None if known.account is None else replace(known.account, again=None)
    # The replay of an inner failure is a function of this process, and the driver has none in its place.
    known = replace(known, inner=inner, account=account)
    try:
        is_large = len(dumps_by_value(known.item)) > _LARGEST_ITEM
    except Exception:
        is_large = True
    return replace(known, item=MISSING, item_text=shown(known.item)) if is_large else known


def _unpacked(packed: _Packed) -> BaseException:
    kind, args, state = pickle.loads(packed.content)
    members = [_unpacked(member) for member in packed.members]
    error = _made(kind, (*args, members) if members else args, state)
    if packed.notes:
        error.__dict__["__notes__"] = packed.notes
    if packed.known is not None:
        attach(error, packed.known)
    if packed.cause is not None:
        BaseException.__setattr__(error, "__cause__", _unpacked(packed.cause))
    return error


def _made(kind: type[BaseException] | None, args: Any, state: dict[str, Any]) -> BaseException:
    """Return an exception of its class and arguments; or one that has pickled itself, with its attributes."""
    if kind is None:
        args.__dict__.update(state)
        return cast(BaseException, args)
    if issubclass(kind, BaseExceptionGroup) and len(args) == 1:
        args = (*args, [Exception()])  # Its members come by themselves.
    return rebuilt(kind, args, state)
