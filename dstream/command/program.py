"""The program: its subcommands, found when they are asked for, and how it says that something went wrong."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from dstream.errors import DStreamError
from dstream.values.distribution import VERSION

__all__ = ["INTERRUPTED", "SAYING", "main", "program"]

_SUBCOMMANDS = {
    "run": "dstream.command.run",
    "submit": "dstream.command.submitting",
    "jobs": "dstream.command.job_commands",
    "shell": "dstream.command.shell",
    "collections": "dstream.command.collections",
    "wordcount": "dstream.command.wordcount",
    "doctor": "dstream.command.doctor",
    "docs": "dstream.command.pages",
}

INTERRUPTED = 130
"""The exit code of what a user has ended: Ctrl-C, or a job that was cancelled."""

SAYING = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""How every subcommand offers its help."""


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
            # The pipeline of a command is none of the user's: where it stands tells them nothing.
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
