"""`JobRecords` and `EpochRecord`: the records of jobs in a storage, their requests and their commits.

A job has up to five: its `state`, which only its driver replaces; the `plan` and the `failure`, pickled; the `epoch`
with the receipts of its sinks; and the `request` of other processes. In addition each name has a record with the last
job that was submitted under it.

A driver that takes over a job rewrites the stored record under its own token. The previous driver, which may only have
been disconnected, then finds that its next version is taken, so that it is no longer the driver.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dstream.errors import EngineError, IllegalStateError, JobTakenOverError
from dstream.jobs.state import JobState, Want, read_state, written_state
from dstream.spi.records import Record
from dstream.spi.sink import Receipt

if TYPE_CHECKING:
    from dstream.spi.records import Records

__all__ = [
    "EpochRecord",
    "FormattedRecords",
    "JobRecords",
    "Pickled",
    "Receipts",
    "Request",
    "StateRecord",
    "new_id",
    "packed",
    "unpacked",
]


Pickled = str
"""`plan`, `failure`, or `update-` and the mark of the request that it belongs to."""


class StateRecord(NamedTuple):
    """State with the version of its record.

    Attributes:
        version: the version of the record; the next one belongs to the process that replaces it first.
    """

    version: int
    state: JobState


class Request(NamedTuple):
    """A request of a process to the driver of a job.

    Attributes:
        number: counts the requests to this job.
        want: the kind of request.
        mark: a unique mark of this request.
    """

    number: int
    want: Want
    mark: str

    @property
    def pickle(self) -> Pickled:
        """The name under which the pipeline of an update is stored."""
        return f"update-{self.mark}"


def new_id(now: float) -> str:
    """Return the id of a job; ids sort by the time at which they were made."""
    return f"{int(now * 1000):012x}-{secrets.token_hex(4)}"


_ID = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")


class FormattedRecords:
    """Records of a storage whose data begins with a line that names its format.

    Args:
        records: the records of the storage.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    def read(self, name: str) -> Record | None:
        """Return the contents of a record, without its line.

        Raises:
            IllegalStateError: it has another format.
        """
        record = self._records.read(name)
        if record is None or record.data.startswith(_FORMAT_LINE):
            return record and Record(record.version, record.data[len(_FORMAT_LINE) :])
        found = _ANY_FORMAT.match(record.data)
        known = "no format" if found is None else f"format {found[1].decode()}"
        raise IllegalStateError(
            f"the record {name} has {known}; this dstream reads {_FORMAT}: use the version that wrote it, or another "
            "storage"
        )

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write the next version of a record, with the line."""
        return self._records.write(name, _FORMAT_LINE + data, version)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        return self._records.names(prefix)

    def remove(self, name: str) -> None:
        """Remove a record."""
        self._records.remove(name)

    def forget(self, name: str) -> None:
        """Remove a record without a trace."""
        self._records.forget(name)


_FORMAT = 1
_FORMAT_LINE = b"dstream records %d\n" % _FORMAT
_ANY_FORMAT = re.compile(rb"dstream records ([0-9]{1,9})\n")


class JobRecords:
    """The records of all jobs of a storage."""

    def __init__(self, records: Records) -> None:
        self._records: Records = FormattedRecords(records)

    @property
    def all(self) -> Records:
        """All records of the storage."""
        return self._records

    def ids(self) -> list[str]:
        """Return the ids of all jobs, oldest first."""
        names = (name.split("/") for name in self._records.names("jobs/"))
        return [parts[1] for parts in names if len(parts) == 3 and parts[2] == "state" and _ID.fullmatch(parts[1])]

    def read(self, identity: str) -> StateRecord | None:
        """Return the state of a job; None if there is no such job."""
        record = self._records.read(_of(identity, "state")) if _ID.fullmatch(identity) else None
        return None if record is None else StateRecord(record.version, read_state(record.data, identity))

    def write(self, state: JobState, version: int) -> bool:
        """Replace the state of a job by version `version`; False if another process was first."""
        return self._records.write(_of(state.id, "state"), written_state(state), version)

    def forget(self, identity: str) -> None:
        """Remove a job that was registered and never started."""
        # The state last, since jobs are found by it: a plan that is left alone would be found by nothing.
        for what in ("plan", "state"):
            self._records.remove(_of(identity, what))

    def latest(self, name: str) -> tuple[int, str | None]:
        """Return the version of the record of a name, and the job that was submitted under it last."""
        record = self._records.read(_of_name(name))
        if record is None:
            return 0, None
        content = _plain(record.data, f"the record of the name {name!r}")
        identity = content.get("id")
        if content.get("name") != name or not isinstance(identity, str) or not _ID.fullmatch(identity):
            raise IllegalStateError(f"the record of the name {name!r} is damaged: it names no job")
        return record.version, identity

    def take_name(self, name: str, identity: str, version: int) -> bool:
        """Store the job of a name; False if another process was first."""
        return self._records.write(_of_name(name), json.dumps({"name": name, "id": identity}).encode(), version)

    def keep_pickle(self, identity: str, what: Pickled, data: bytes) -> None:
        """Store a pickle with the state; it replaces the pickle of an earlier run."""
        # The first run of a job is the usual case: it costs one write, and no read.
        if self._records.write(_of(identity, what), data, 1):
            return
        record = self._records.read(_of(identity, what))
        if record is not None and record.data != data:
            self._records.write(_of(identity, what), data, record.version + 1)

    def forget_pickle(self, identity: str, what: Pickled) -> None:
        """Remove a pickle."""
        self._records.remove(_of(identity, what))

    def pickle(self, identity: str, what: Pickled) -> bytes | None:
        """Return a stored pickle, or None."""
        record = self._records.read(_of(identity, what))
        return None if record is None else record.data

    def epoch(self, identity: str) -> tuple[int, bytes | None]:
        """Return the version of the record of epochs and its contents."""
        record = self._records.read(_of(identity, "epoch"))
        return (0, None) if record is None else (record.version, record.data)

    def write_epoch(self, identity: str, data: bytes, version: int) -> bool:
        """Replace the record of epochs by version `version`; False if another driver was first."""
        return self._records.write(_of(identity, "epoch"), data, version)

    def requests(self, identity: str) -> list[Request]:
        """Return the requests to a job, oldest first: all pending ones, and possibly answered ones."""
        record = self._records.read(_of(identity, "request"))
        return [] if record is None else _requests(record.data, identity)

    def ask(self, identity: str, want: Want, mark: str, answered: int = 0) -> Request:
        """Send a request to the driver of a job; an existing request is unchanged.

        Args:
            identity: the job.
            want: the kind of request.
            mark: a unique mark of this request.
            answered: the number of the last answered request; it and all earlier ones are dropped.
        """
        while True:
            record = self._records.read(_of(identity, "request"))
            requests = [] if record is None else _requests(record.data, identity)
            # It exists if its write arrived and the answer was lost, or if it was sent to a driver that is lost.
            if found := [each for each in requests if each.mark == mark]:
                return found[0]
            made = Request(1 if record is None else record.version + 1, want, mark)
            kept = [each for each in requests if each.number > answered]
            if self._records.write(_of(identity, "request"), _written([*kept, made]), made.number):
                return made

    def withdraw(self, identity: str, mark: str) -> None:
        """Withdraw a request, so that no later driver obeys it."""
        while (record := self._records.read(_of(identity, "request"))) is not None:
            requests = _requests(record.data, identity)
            kept = [each for each in requests if each.mark != mark]
            if len(kept) == len(requests):
                return
            if self._records.write(_of(identity, "request"), _written(kept), record.version + 1):
                return


def _written(requests: Iterable[Request]) -> bytes:
    return json.dumps({"requests": [each._asdict() for each in requests]}).encode()


def _requests(data: bytes, identity: str) -> list[Request]:
    content = _plain(data, f"the request to the job {identity}").get("requests")
    made = [_request(each, identity) for each in content] if isinstance(content, list) else [_request(None, identity)]
    # By number, since a driver stores up to which number it has answered.
    return sorted(made)


# Without `leave`: a driver leaves when its own context closes, and no other process may request that.
_WANTED = ("cancel", "restart", "suspend", "resume", "update")
_MARK = re.compile(r"[0-9a-f]{32}")


def _request(content: Any, identity: str) -> Request:
    number, want, mark = map(content.get, Request._fields) if isinstance(content, dict) else (None, None, None)
    if (
        type(number) is not int
        or number < 1
        or want not in _WANTED
        or not isinstance(mark, str)
        or not _MARK.fullmatch(mark)
    ):
        raise IllegalStateError(f"the request to the job {identity} is damaged: it asks for nothing")
    return Request(number, want, mark)


def _of(identity: str, what: str) -> str:
    return f"jobs/{identity}/{what}"


def _of_name(name: str) -> str:
    # A digest, since a job may have any name, and names of records consist of a-z, 0-9 and -.
    return f"job-names/{hashlib.sha256(name.encode()).hexdigest()[:48]}"


def _plain(data: bytes, title: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IllegalStateError(f"{title} is damaged: {error!s:.200}") from error
    if not isinstance(content, dict):
        raise IllegalStateError(f"{title} is damaged: it holds no fields")
    return content


Receipts = Mapping[int, Sequence[Receipt]]
"""The receipts of each sink that has any to publish, by its position in the pipeline."""


class EpochRecord:
    """The record of one job as one driver sees it.

    Args:
        records: where it is stored.
        identity: the job.
        token: the token of the driver.
    """

    def __init__(self, records: JobRecords, identity: str, token: str) -> None:
        self._records = records
        self._identity = identity
        self._token = token
        self._version = 0
        self._is_known = True
        self.receipts: Receipts | None = None

    def looked_up(self) -> Receipts | None:
        """Return the committed receipts, as they are stored now."""
        _, data = self._records.epoch(self._identity)
        return None if data is None else _read(data, self._identity)[1]

    def claim(self) -> None:
        """Become the driver that commits, and find the receipts that were committed before."""
        while True:
            version, data = self._records.epoch(self._identity)
            receipts = None if data is None else _read(data, self._identity)[1]
            if self._records.write_epoch(self._identity, packed((self._token, receipts)), version + 1):
                self._version, self.receipts = version + 1, receipts
                return

    def refresh(self) -> None:
        """Read the committed receipts again; a run before this one may have lost the answer. The first run has them.

        Raises:
            JobTakenOverError: another driver decides.
        """
        if not self._is_known:
            version, data = self._records.epoch(self._identity)
            token, receipts = (self._token, None) if data is None else _read(data, self._identity)
            if token != self._token:
                raise _taken_over(self._identity)
            self._version, self.receipts = version, receipts
        # A later run may not know whether the commit of this run succeeded.
        self._is_known = False

    def commit(self, receipts: Receipts | None) -> None:
        """Commit the receipts of the sinks; None withdraws receipts that cannot be published any more.

        Raises:
            JobTakenOverError: another driver decides.
        """
        written = packed((self._token, None if receipts is None else dict(receipts)))
        if not self._records.write_epoch(self._identity, written, self._version + 1):
            self._check_own_answer_was_lost(written)
        self._version += 1
        self.receipts = receipts

    def _check_own_answer_was_lost(self, written: bytes) -> None:
        """Return if the stored record is the one just written, and only the response was lost.

        The token alone does not show that: a write that timed out may arrive after a later run has written other
        receipts under the same token.

        Raises:
            JobTakenOverError: another driver decides.
            EngineError: an earlier run of this driver does; the next one publishes the receipts that it has committed.
        """
        version, data = self._records.epoch(self._identity)
        if data == written and version == self._version + 1:
            return
        if data is not None and _read(data, self._identity)[0] == self._token:
            raise EngineError(
                f"a run before this one of the job {self._identity} has committed, which was not known; "
                "what this one wrote is thrown away"
            )
        raise _taken_over(self._identity)


def _taken_over(identity: str) -> JobTakenOverError:
    return JobTakenOverError(
        f"another driver has taken over the job {identity}, which continues there; what this one wrote is thrown away"
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
        ValueError: it has an int of more than 4,300 digits.
    """
    import msgpack  # imported on use: `import dstream` must not load it

    # Unless types are strict, msgpack (1.2) writes a tuple as a list, and an offset would be read back as another
    # value.
    data: Any = msgpack.packb(value, default=_extended, strict_types=True)
    return bytes(data)


def _extended(value: Any) -> Any:
    import msgpack

    if isinstance(value, tuple):
        return msgpack.ExtType(_TUPLE, packed(list(value)))
    # Integers of msgpack have 64 bits; it passes larger ones to this function.
    if type(value) is int:
        if abs(value) > _LARGEST:
            raise ValueError(f"a receipt or an offset has an int of more than {_MOST_DIGITS:,} digits")
        return msgpack.ExtType(_LARGE, str(value).encode())
    raise TypeError(f"a receipt holds {type(value).__qualname__}, which is no plain data")


_TUPLE, _LARGE = 1, 2
# Python (3.11) neither writes nor reads ints of more digits, since that takes quadratic time, unless a process sets
# another limit: a record that one may write, all others must be able to read.
_MOST_DIGITS = 4300
_LARGEST = 10**_MOST_DIGITS - 1


def unpacked(data: bytes) -> Any:
    """Return the value of packed data.

    Raises:
        ValueError: nothing was; msgpack's own exceptions too.
    """
    import msgpack

    return msgpack.unpackb(data, ext_hook=_reduced, strict_map_key=False)


def _reduced(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(unpacked(data))
    if code == _LARGE and len(data.removeprefix(b"-")) <= _MOST_DIGITS:
        return int(data)
    raise ValueError("data of an unknown kind")


ANSWERS_KEPT = 64
"""Number of obeyed requests that are recorded: each requester polls for its own within half a second."""
