"""The program: its subcommands, loaded on demand, their shared options, and messages of errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn, TypeVar

import click

from dstream.base.environment import VERSION
from dstream.errors import DStreamError
from dstream.session import Context, connect
from dstream.session.configuration import configured

__all__ = [
    "INTERRUPTED",
    "SAYING",
    "connected",
    "engine_options",
    "fail",
    "main",
    "name_option",
    "program",
    "storage_option",
]


_SUBCOMMANDS = {
    "run": "dstream.command.run",
    "submit": "dstream.command.submission",
    "jobs": "dstream.command.jobs",
    "shell": "dstream.command.shell",
    "collections": "dstream.command.collections",
    "wordcount": "dstream.command.wordcount",
    "doctor": "dstream.command.doctor",
    "docs": "dstream.command.pages",
}

INTERRUPTED = 130
"""The exit code of what a user has ended: Ctrl-C, or a job that was cancelled."""

SAYING = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""The options by which every subcommand offers its help."""


class _Program(click.Group):
    """Imports a subcommand when it is asked for, and turns errors of dstream into one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _SUBCOMMANDS.get(cmd_name)
        return None if module is None else getattr(import_module(module), cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DStreamError as error:
            # The pipeline of a command is not the user's: its source location is no use to them.
            advice = [note for note in getattr(error, "__notes__", ()) if note.startswith("What to do")]
            for line in [str(error), *advice]:
                click.secho(line, fg="red", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            # As Python notes it of a program that ends so: jobs that are still there are cancelled, not waited for.
            sys.last_type = KeyboardInterrupt
            ctx.exit(INTERRUPTED)


@click.group(cls=_Program, context_settings=SAYING)
@click.version_option(VERSION, message="%(prog)s %(version)s")
def program() -> None:
    """Streams over distributed collections, with Spark as the engine."""


def main() -> None:
    """Run the command with the arguments of this process."""
    program(prog_name="dstream")


F = TypeVar("F", bound=Callable[..., Any])


def storage_option(command: F) -> F:
    """Add the option for the storage of collections."""
    return click.option("--storage", metavar="PLACE", help="Where collections live: a folder or a URL.")(command)


def engine_options(command: F) -> F:
    """Add the options for the engine of streams, and for the storage of collections."""
    engine = click.option(
        "--engine",
        type=click.Choice(["spark", "local", "auto"]),
        help="What streams run on; by default auto, or with a master spark.",
    )
    master = click.option("--master", metavar="MASTER", help="The Spark master, such as local[4] or spark://host:7077.")
    return engine(master(storage_option(command)))


def name_option(command: F) -> F:
    """Add the option that names the job of a script."""
    return click.option(
        "--name", metavar="NAME", help="What the job of the script is called if the script does not say."
    )(command)


def connected(
    engine: str | None = None, master: str | None = None, storage: str | None = None, *, is_for_a_prompt: bool = False
) -> Context:
    """Return a context; settings without an option are configured. Beside a prompt Spark, as engine, starts at once."""
    chosen = configured({"engine": engine, "master": master})
    is_unsaid = is_for_a_prompt and chosen["engine"] == "spark" and chosen["warm"] is None
    return connect(master, engine, storage=storage, warm=True if is_unsaid else None)


def fail(message: str, code: int = 1) -> NoReturn:
    """Report an error in one sentence, and end with `code`."""
    click.secho(message, fg="red", err=True)
    raise SystemExit(code)
