"""`dstream jobs`: the jobs of a storage, in any process, and the logs of their drivers, without Spark or Java.

A job's record contains the path of its log, and a record is input: a writer of the storage may have named any file of
this user's. So each log leaves its name in a folder of the user's own, and no other file is shown.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from dstream.base.showing import did_you_mean
from dstream.command.program import SAYING, connected, fail, storage_option
from dstream.errors import IllegalStateError
from dstream.jobs import Job, JobStatus
from dstream.jobs.metrics import COLUMNS, facts_of, line_of, printable
from dstream.session import Context

__all__ = ["is_log", "jobs", "log_of", "noted"]


def log_of(name: str) -> Path:
    """Return a new file for the log of a job, among those that belong to this user's programs."""
    return _folder() / f"{_file_name(name)}.log"


def noted(name: str, log: Path) -> None:
    """Remember that a file is the log of a job, wherever it is.

    Raises:
        OSError: this user's folder cannot be written.
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log.parent.resolve() != folder.resolve():
        (folder / f"{_file_name(name)}.at").symlink_to(log)


def is_log(path: Path) -> bool:
    """Return whether this user's `dstream submit` has made a file, which is no device and no pipe."""
    folder, found = _folder(), path.resolve()
    try:
        is_one = found.parent == folder.resolve() or any(each.resolve() == found for each in folder.glob("*.at"))
    except (OSError, RuntimeError):  # A link that leads to itself is a RuntimeError.
        return False
    return is_one and (found.is_file() or not found.exists())


def _folder() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "dstream" / "jobs"


def _file_name(name: str) -> str:
    # Filesystems allow 255 bytes in a name.
    return f"{quote(name, safe=' ')[:100]}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


F = TypeVar("F", bound=Callable[..., Any])

_WIDEST = 1000
"""Columns of a table that is written to no terminal: nothing is cut."""


def _of_one(command: F) -> F:
    """Add the arguments that name one job, and its storage."""
    return click.argument("name")(storage_option(command))


@click.group(context_settings=SAYING, invoke_without_command=True)
@storage_option
@click.pass_context
def jobs(ctx: click.Context, storage: str | None) -> None:
    """List the jobs of a storage, or work with one of them.

    NAME is the name of a job, which means the latest of that name, or an id. --storage may stand before or behind
    the subcommand.
    """
    ctx.obj = storage
    if ctx.invoked_subcommand is None:
        with connected("local", storage=storage) as context:
            _list(context)


@jobs.command(context_settings=SAYING)
@_of_one
@click.option("--watch", is_flag=True, help="Go on showing it until it ends or has no driver for 10 s.")
@click.option("--openmetrics", is_flag=True, help="Print its numbers as Prometheus reads them.")
def show(name: str, storage: str | None, watch: bool, openmetrics: bool) -> None:
    """Show how a job is, and its stages in numbers."""
    with _found(name, storage) as job:
        if openmetrics:
            click.echo(job.metrics().to_openmetrics(), nl=False)
        elif watch:
            _watch(job)
        else:
            _show(job)


@jobs.command(context_settings=SAYING)
@_of_one
def cancel(name: str, storage: str | None) -> None:
    """End a job; its sinks stay as they were."""
    _ask(name, storage, lambda job: job.cancel(), "was not cancelled", *_CANCELLED)


def _ask(
    name: str,
    storage: str | None,
    obeys: Callable[[Job], bool],
    refused: str,
    done: str,
    wanted: JobStatus | None = None,
    later: str = "",
) -> None:
    """Request something of a job, and report whether it was done, or will be."""
    with _found(name, storage) as job:
        if not obeys(job):
            fail(f"{name} {refused}: it is {job.status.name}")
        click.echo(f"{name} {done if wanted is None or _is_reached(job, wanted) else later}")


def _is_reached(job: Job, wanted: JobStatus) -> bool:
    """Wait for a status; False if it takes long, or if something else was requested of the job meanwhile."""
    with suppress(TimeoutError, IllegalStateError):
        job.wait_for(wanted, timeout=_PATIENCE)
        return True
    return False


_CANCELLED = ("is cancelled", JobStatus.CANCELLED, "is asked to end")
_SUSPENDED = ("is suspended", JobStatus.SUSPENDED, "is asked to wait behind its epoch")


@jobs.command(context_settings=SAYING)
@_of_one
def restart(name: str, storage: str | None) -> None:
    """Restart a running job from its sources."""
    _ask(name, storage, lambda job: job.restart(), "was not started again", "starts again")


@jobs.command(context_settings=SAYING)
@_of_one
def logs(name: str, storage: str | None) -> None:
    """Print the log of a job's driver, if `dstream submit` started it."""
    with _found(name, storage) as job:
        driver = job.driver
        if driver.log is None:
            fail(f"{name} has no log: its driver was not started by dstream submit")
        if driver.host != socket.gethostname():
            fail(f"the log of {name} is on {driver.host}: {printable(driver.log)}")
        if not is_log(Path(driver.log)):
            fail(f"the log of {name} would be {printable(driver.log)}, which no dstream submit of yours has written")
        try:
            sys.stdout.write(Path(driver.log).read_text(errors="replace"))
        except OSError as error:
            fail(f"the log {printable(driver.log)} cannot be read: {error.strerror}")


@jobs.command(context_settings=SAYING)
@_of_one
def suspend(name: str, storage: str | None) -> None:
    """Suspend an unbounded job after its epoch."""
    _ask(name, storage, lambda job: job.suspend(), "was not suspended", *_SUSPENDED)


@jobs.command(context_settings=SAYING)
@_of_one
def resume(name: str, storage: str | None) -> None:
    """Resume a suspended job."""
    _ask(name, storage, lambda job: job.resume(), "was not resumed", "goes on")


@jobs.command(context_settings=SAYING)
@_of_one
def snapshot(name: str, storage: str | None) -> None:
    """Save the state of a job without an end under the name of the job, for JobConfig(initial_snapshot=)."""
    with _found(name, storage) as job:
        exported = job.export_snapshot(name)
        click.echo(f"snapshot {name}: {sum(exported.keys.values())} keys of state, after epoch {exported.epoch}")


def _list(context: Context) -> None:
    found = context.jobs()
    if not found:
        click.echo(f"no jobs in {context.running_storage().url}", err=True)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*COLUMNS, box=None, pad_edge=False)
    damaged = []
    for job in found:
        try:
            table.add_row(*map(Text, line_of(job)))
        except IllegalStateError as error:
            table.add_row(job.id, "", "damaged")
            damaged.append(str(error))
    _print(table)
    if damaged:
        fail("\n".join(damaged))


def _show(job: Job) -> None:
    metrics = job.metrics()
    for label, text in facts_of(job):
        if text:
            indented = text if label else text.replace("\n", "\n" + " " * 12)
            click.echo(f"{label:<12}{indented}")
    click.echo()
    for table in metrics.tables():
        _print(table)


def _watch(job: Job) -> None:
    """Show a job until it ends. One that is lost may go on in another process, which gets some time for that."""
    from rich.console import Console
    from rich.live import Live

    seen_at = time.monotonic()
    with Live(job.metrics(), console=Console(), auto_refresh=False) as live:
        while not job.status.has_ended and time.monotonic() - seen_at <= _PATIENCE:
            time.sleep(_BETWEEN_LOOKS)
            seen_at = seen_at if job.is_lost else time.monotonic()
            live.update(job.metrics(), refresh=True)


_BETWEEN_LOOKS = 0.5
_PATIENCE = 10.0
"""Seconds for which a job is watched that has no driver, and for which a request is waited for."""


def _print(table: Any) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDEST).print(table)


@contextmanager
def _found(name: str, storage: str | None) -> Iterator[Job]:
    """Find a job, or fail with a sentence if there is none."""
    with connected("local", storage=storage or click.get_current_context().find_object(str)) as context:
        job = context.job(name)
        if job is None:
            fail(_missing(name, context))
        yield job


def _missing(name: str, context: Context) -> str:
    names = sorted({each.name for each in context.jobs() if each.name is not None})
    hint = did_you_mean(name, names, n=3) or "`dstream jobs` lists what there is"
    return f"there is no job {name!r} in {context.running_storage().url}; {hint}"
