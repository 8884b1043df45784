"""The options that subcommands share, and the context that they describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from dstream.session import Context, connect
from dstream.session.configuration import configured

__all__ = ["connected", "engine_options", "fail", "name_option", "storage_option"]

F = TypeVar("F", bound=Callable[..., Any])


def storage_option(command: F) -> F:
    """Add the option that says where collections live."""
    return click.option("--storage", metavar="PLACE", help="Where collections live: a folder or a URL.")(command)


def engine_options(command: F) -> F:
    """Add the options that say what streams run on, and where collections live."""
    engine = click.option("--engine", type=click.Choice(["spark", "local", "auto"]), help="What streams run on.")
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
    """Return a context; what no option says is configured. Beside a prompt Spark starts at once, unless that is."""
    is_unsaid = is_for_a_prompt and configured({})["warm"] is None
    return connect(master, engine, storage=storage, warm=True if is_unsaid else None)


def fail(message: str, code: int = 1) -> NoReturn:
    """Say in one sentence what is wrong, and end with `code`."""
    click.secho(message, fg="red", err=True)
    raise SystemExit(code)
