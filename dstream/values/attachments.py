"""`attached`: files and modules that travel with a job.

A process may run several jobs at once, so the thread of a job stores its job. A thread that a function has started has
none: it finds a file whose name is unique among the jobs of the process.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from dstream.base.threads import RenewedLock, contextmanager
from dstream.errors import IllegalStateError

__all__ = [
    "GIVEN",
    "NAMED",
    "JobFiles",
    "attached",
    "files_here",
    "forget_modules",
    "is_of_a_job",
    "of_job",
    "using_files",
]


GIVEN = "given"
"""The folder of the modules that were attached by path, which precede others of their names."""
NAMED = "named"
"""The folder of the modules that were attached by name, for processes that cannot import them otherwise."""


@dataclass(frozen=True, eq=False)
class JobFiles:
    """The files and modules of one job.

    Attributes:
        name: unique among jobs.
        folder: the location of the files and modules.
        files: paths below the folder, by their names.
        modules: a digest of the content of each module that was attached by path, by its name.
        is_elsewhere: this is not the machine of the driver, so its folders are not accessible.
    """

    name: str
    folder: str
    files: dict[str, str]
    modules: dict[str, str]
    is_elsewhere: bool = False

    @property
    def first(self) -> list[str]:
        """The folders that `import` searches before all others."""
        return [str(Path(self.folder, GIVEN))]

    @property
    def last(self) -> list[str]:
        """The folders that it searches after all others."""
        return [str(Path(self.folder, NAMED))] if self.is_elsewhere else []


_here: ContextVar[JobFiles | None] = ContextVar("dstream_files", default=None)
_lock = RenewedLock()
_in_process: dict[str, JobFiles] = {}
_users: Counter[str] = Counter()
_searched: set[str] = set()
"""All folders of modules of jobs that this process has looked into."""


def attached(name: str) -> Path:
    """Return the location of a file or a folder that is sent with the job: `JobConfig(files=)` names it.

    For functions of the pipeline, on any machine. The file has its content at the time of submission; all tasks of a
    machine share one copy, which must not be modified.

    Args:
        name: as in `files`; by default the last part of the path.

    Raises:
        FileNotFoundError: the job has no file of that name.
        IllegalStateError: no job runs in this process; or several jobs have such a file, and this thread belongs to
            none of them.

    Example:
        >>> import pathlib, tempfile
        >>> from reducers import to_ilist
        >>> from sources import items
        >>> words = pathlib.Path(tempfile.mkdtemp(), "stop words.txt")
        >>> _ = words.write_text("a the")
        >>> pipeline = Pipeline()
        >>> wanted = pipeline.read_from(items("the", "whale")).filter(lambda w: w not in attached("stop").read_text())
        >>> _ = wanted.write_to(to_ilist("without stop words"))
        >>> with connect(engine="local") as ctx:
        ...     ctx.new_job(pipeline, config=JobConfig(files={"stop": words})).join()
        ...     ctx.get_list("without stop words").copy()
        ['whale']
    """
    files = _here.get() or _only_one_with(name)
    if name not in files.files:
        known = ", ".join(map(repr, files.files)) or "none"
        raise FileNotFoundError(f"no file {name!r} is attached to this job; JobConfig(files=) names {known}")
    return Path(files.folder, files.files[name])


def _only_one_with(name: str) -> JobFiles:
    with _lock:
        jobs = list(_in_process.values())
    # Without a match, the message about the first job names its files.
    having = [each for each in jobs if name in each.files] or jobs[:1]
    if not having:
        raise IllegalStateError(
            f"attached({name!r}): no job that runs here has files; new_job(..., config=JobConfig(files=)) attaches them"
        )
    if len(having) > 1:
        raise IllegalStateError(
            f"attached({name!r}): {len(having)} jobs of this process have a file of that name, and this thread was "
            "started by a function of one of them: call attached() before, and hand its result over"
        )
    return having[0]


def files_here() -> JobFiles | None:
    """Return the files of the job that this thread runs; None if it runs none, or one without files."""
    return _here.get()


def of_job(files: JobFiles | None) -> None:
    """Share the files of a job with this thread, which a thread of the job has started."""
    _here.set(files)


def is_of_a_job(folder: str) -> bool:
    """Return whether `folder` contains the modules of a job."""
    return folder in _searched


@contextmanager
def using_files(files: JobFiles | None) -> Iterator[None]:
    """Make the files of a job available to this thread, and its modules to all threads.

    Raises:
        IllegalStateError: another job that runs in this process brings a module of the same name, and of other content.
    """
    before = _here.get()
    _here.set(files)
    try:
        if files is None:
            forget_modules()
            yield
            return
        _begin(files)
        try:
            yield
        finally:
            _end(files)
    finally:
        _here.set(before)


def _begin(files: JobFiles) -> None:
    with _lock:
        # Before anything changes, since a job that is refused does not end what it began.
        for other in _in_process.values():
            _check_modules(files, other)
        if not _users[files.name]:
            _in_process[files.name] = files
            _forget_modules()
            _searched.update(files.first, files.last)
            sys.path[:0] = files.first
            sys.path += files.last
        _users[files.name] += 1


def _end(files: JobFiles) -> None:
    with _lock:
        _users[files.name] -= 1
        if _users[files.name]:
            return
        del _users[files.name], _in_process[files.name]
        for place in files.first + files.last:
            with suppress(ValueError):  # A caller may have replaced the list.
                sys.path.remove(place)


def _check_modules(files: JobFiles, other: JobFiles) -> None:
    for name, digest in files.modules.items():
        if other.modules.get(name, digest) != digest:
            raise IllegalStateError(
                f"another job that runs in this process has brought a module {name!r} of other content, and a process "
                "has one of a name: run the jobs one after another, or in two processes"
            )


def forget_modules() -> None:
    """Unload the modules of jobs that do not run in this process: the next job may have others of the same names.

    They remain loaded while the same job runs task after task in this process.
    """
    if _searched:
        with _lock:
            _forget_modules()


def _forget_modules() -> None:
    running = {place for each in _in_process.values() for place in each.first + each.last}
    # With the slash, since the name of one folder may be a prefix of another.
    gone = tuple(f"{place}/" for place in _searched - running)
    if gone:
        # A copy, since other threads import meanwhile.
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(gone):
                del sys.modules[name]
