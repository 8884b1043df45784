"""`JobRecords`: where the records of jobs stand, and how they are read and replaced.

A job has up to five: its `state`, which only its driver replaces; the `plan` and the `failure`, pickled; the `epoch`
with the receipts of its sinks; and the `request` by which other processes ask for something. Beside them each name
has a record that says which job was submitted under it last.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dstream.errors import IllegalStateError
from dstream.jobs.job_state import JobState, read_state, written_state

if TYPE_CHECKING:
    from dstream.spi.records import Records

__all__ = ["Held", "JobRecords", "Pickled", "Request", "Want", "new_id"]

Want = Literal["cancel", "restart", "suspend", "resume", "update", "leave"]
"""What a run is asked for. `leave`: to end its epoch, so that the job goes on when it is submitted again."""
Pickled = str
"""`plan`, `failure`, or `update-` and the mark of the request that it belongs to."""
_WANTED = ("cancel", "restart", "suspend", "resume", "update")
_ID = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")
_MARK = re.compile(r"[0-9a-f]{32}")


class Held(NamedTuple):
    """A state as it stands in its record.

    Attributes:
        version: that of the record; the next one is that of whoever replaces it first.
    """

    version: int
    state: JobState


class Request(NamedTuple):
    """What a process asks of the driver of a job.

    Attributes:
        number: counts the requests to this job.
        want: what is asked for.
        mark: of this request alone.
    """

    number: int
    want: Want
    mark: str

    @property
    def pickle(self) -> Pickled:
        """The name under which the pipeline of an update is kept."""
        return f"update-{self.mark}"


def new_id(now: float) -> str:
    """Return the id of a job; ids sort by the time at which they were made."""
    return f"{int(now * 1000):012x}-{secrets.token_hex(4)}"


class JobRecords:
    """The records of all jobs of a storage."""

    def __init__(self, records: Records) -> None:
        self._records = records

    @property
    def all(self) -> Records:
        """All records of the storage."""
        return self._records

    def ids(self) -> list[str]:
        """Return the ids of all jobs, oldest first."""
        names = (name.split("/") for name in self._records.names("jobs/"))
        return [parts[1] for parts in names if len(parts) == 3 and parts[2] == "state" and _ID.fullmatch(parts[1])]

    def read(self, identity: str) -> Held | None:
        """Return the state of a job; None if there is no such job."""
        record = self._records.read(_of(identity, "state")) if _ID.fullmatch(identity) else None
        return None if record is None else Held(record.version, read_state(record.data, identity))

    def write(self, state: JobState, version: int) -> bool:
        """Replace the state of a job by version `version`; False if somebody else was first."""
        return self._records.write(_of(state.id, "state"), written_state(state), version)

    def forget(self, identity: str) -> None:
        """Remove a job that was registered and never started."""
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
        """Let a name mean a job; False if somebody else was first."""
        return self._records.write(_of_name(name), json.dumps({"name": name, "id": identity}).encode(), version)

    def keep_pickle(self, identity: str, what: Pickled, data: bytes) -> None:
        """Keep a pickle beside the state; it replaces the one of a run before."""
        if self._records.write(_of(identity, what), data, 1):
            return
        record = self._records.read(_of(identity, what))
        if record is not None and record.data != data:
            self._records.write(_of(identity, what), data, record.version + 1)

    def forget_pickle(self, identity: str, what: Pickled) -> None:
        """Keep no pickle any more."""
        self._records.remove(_of(identity, what))

    def pickle(self, identity: str, what: Pickled) -> bytes | None:
        """Return a pickle as it was kept, or None."""
        record = self._records.read(_of(identity, what))
        return None if record is None else record.data

    def epoch(self, identity: str) -> tuple[int, bytes | None]:
        """Return the version of the record of epochs and what it holds."""
        record = self._records.read(_of(identity, "epoch"))
        return (0, None) if record is None else (record.version, record.data)

    def write_epoch(self, identity: str, data: bytes, version: int) -> bool:
        """Replace the record of epochs by version `version`; False if somebody else was first."""
        return self._records.write(_of(identity, "epoch"), data, version)

    def requests(self, identity: str) -> list[Request]:
        """Return the requests to a job, oldest first: all that nobody has answered, and some that were answered."""
        record = self._records.read(_of(identity, "request"))
        return [] if record is None else _requests(record.data, identity)

    def ask(self, identity: str, want: Want, mark: str, answered: int = 0) -> Request:
        """Ask the driver of a job for something; a request that is there already stays as it is.

        Args:
            identity: the job.
            want: what is asked for.
            mark: of this request alone.
            answered: the number of a request that was answered, as were all before it, which are dropped.
        """
        while True:
            record = self._records.read(_of(identity, "request"))
            requests = [] if record is None else _requests(record.data, identity)
            if found := [each for each in requests if each.mark == mark]:
                return found[0]
            made = Request(1 if record is None else record.version + 1, want, mark)
            kept = [each for each in requests if each.number > answered]
            if self._records.write(_of(identity, "request"), _written([*kept, made]), made.number):
                return made

    def withdraw(self, identity: str, mark: str) -> None:
        """Take a request back, so that no later driver obeys it."""
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
    return sorted(made)


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
    return f"job-names/{hashlib.sha256(name.encode()).hexdigest()[:48]}"


def _plain(data: bytes, title: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IllegalStateError(f"{title} is damaged: {error!s:.200}") from error
    if not isinstance(content, dict):
        raise IllegalStateError(f"{title} is damaged: it holds no fields")
    return content
