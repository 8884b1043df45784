"""`EpochRecord`: what a job has committed. Whoever puts the next version of it decides, and nobody else.

A driver that takes a job over puts what is there once more, under its own token. The driver before it, which may only
have been cut off, then finds the version taken that it wants to put, and knows that it is no longer the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dstream.errors import EngineError, IllegalStateError, JobTakenOverError
from dstream.jobs.job_records import JobRecords
from dstream.spi.sink import Receipt

__all__ = ["EpochRecord", "Receipts", "packed", "unpacked"]

Receipts = Mapping[int, Sequence[Receipt]]
"""The receipts of each sink that has any to publish, by its place in the pipeline."""


class EpochRecord:
    """The record of one job as one driver sees it.

    Args:
        records: where it stands.
        identity: the job.
        token: that of the driver.
    """

    def __init__(self, records: JobRecords, identity: str, token: str) -> None:
        self._records = records
        self._identity = identity
        self._token = token
        self._version = 0
        self._is_known = True
        self.receipts: Receipts | None = None

    def looked_up(self) -> Receipts | None:
        """Return what was committed, as it stands there now."""
        _, data = self._records.epoch(self._identity)
        return None if data is None else _read(data, self._identity)[1]

    def claim(self) -> None:
        """Become the one who commits, and find what was committed before."""
        while True:
            version, data = self._records.epoch(self._identity)
            receipts = None if data is None else _read(data, self._identity)[1]
            if self._records.write_epoch(self._identity, packed((self._token, receipts)), version + 1):
                self._version, self.receipts = version + 1, receipts
                return

    def refresh(self) -> None:
        """Look again what was committed; a run before this one may have lost the answer. The first run knows it.

        Raises:
            JobTakenOverError: another driver decides.
        """
        if not self._is_known:
            version, data = self._records.epoch(self._identity)
            token, receipts = (self._token, None) if data is None else _read(data, self._identity)
            if token != self._token:
                raise _taken_over(self._identity)
            self._version, self.receipts = version, receipts
        self._is_known = False

    def commit(self, receipts: Receipts | None) -> None:
        """Decide what the sinks publish; None takes back what cannot be published any more.

        Raises:
            JobTakenOverError: another driver decides.
        """
        written = packed((self._token, None if receipts is None else dict(receipts)))
        if not self._records.write_epoch(self._identity, written, self._version + 1):
            self._check_own_answer_was_lost(written)
        self._version += 1
        self.receipts = receipts

    def _check_own_answer_was_lost(self, written: bytes) -> None:
        """Go on if what stands there is what was just written, and only the answer was lost.

        The token alone does not say that: a write whose answer timed out may land after the run that followed it has
        written other receipts under the same token.

        Raises:
            JobTakenOverError: another driver decides.
            EngineError: an earlier run of this driver does; the next one publishes what that has committed.
        """
        version, data = self._records.epoch(self._identity)
        if data == written and version == self._version + 1:
            return
        if data is not None and _read(data, self._identity)[0] == self._token:
            raise EngineError(
                f"a run before this one of the job {self._identity} has committed, which nobody knew; "
                "what this one wrote is thrown away"
            )
        raise _taken_over(self._identity)


def _taken_over(identity: str) -> JobTakenOverError:
    return JobTakenOverError(
        f"another driver has taken over the job {identity}, which goes on there; what this one wrote is thrown away"
    )


def _read(data: bytes, identity: str) -> tuple[str, Receipts | None]:
    try:
        token, receipts = unpacked(data)
        if not isinstance(token, str) or not (receipts is None or _are_receipts(receipts)):
            raise ValueError("it holds no receipts")
    except Exception as error:
        raise IllegalStateError(f"the receipts of the job {identity} are damaged: {error!s:.200}") from error
    return token, receipts


def _are_receipts(receipts: Any) -> bool:
    return isinstance(receipts, dict) and all(
        type(place) is int and place >= 0 and isinstance(each, list) for place, each in receipts.items()
    )


def packed(value: Any) -> bytes:
    """Return plain data as bytes, from which `unpacked` makes an equal value of the same types.

    Raises:
        TypeError: it is no plain data.
    """
    import msgpack  # here: `import dstream` must not load it

    data: Any = msgpack.packb(value, default=_extended, strict_types=True)
    return bytes(data)


def _extended(value: Any) -> Any:
    import msgpack

    if isinstance(value, tuple):
        return msgpack.ExtType(_TUPLE, packed(list(value)))
    if type(value) is int:
        return msgpack.ExtType(_LARGE, str(value).encode())
    raise TypeError(f"a receipt holds {type(value).__qualname__}, which is no plain data")


_TUPLE, _LARGE = 1, 2
_MOST_DIGITS = 4000


def unpacked(data: bytes) -> Any:
    """Return what was packed.

    Raises:
        ValueError: nothing was; msgpack's own exceptions too.
    """
    import msgpack

    return msgpack.unpackb(data, ext_hook=_reduced, strict_map_key=False)


def _reduced(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(unpacked(data))
    if code == _LARGE and len(data) <= _MOST_DIGITS:
        return int(data)
    raise ValueError("data of an unknown kind")
