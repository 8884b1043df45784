"""`dstream run`: a script with a context, as the module `__main__`."""

from __future__ import annotations

import builtins
import os
import sys
from types import CodeType, ModuleType
from typing import Any

import click

from dstream.command.program import INTERRUPTED, SAYING, connected, engine_options, fail, name_option
from dstream.jobs.outcomes import JobCancelledError, show_lines_of_jobs
from dstream.session import Context

__all__ = ["check_is_script", "compiled", "new_main", "run"]


def new_main(**names: Any) -> ModuleType:
    """Put a new module in the place of `__main__`, with these names in it."""
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, **names})
    sys.modules["__main__"] = main
    return main


@click.command(context_settings={**SAYING, "ignore_unknown_options": True})
@engine_options
@name_option
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    script: str, args: tuple[str, ...], engine: str | None, master: str | None, storage: str | None, name: str | None
) -> None:
    """Run a Python script with a context.

    SCRIPT runs as `python SCRIPT ARGS` would run it, with an open context as the global name `ctx`, which is closed
    at the end. A job that it submits is called NAME, unless the script says otherwise. The exit code is that of the
    script; 130 if a job was cancelled that it waits for.

    Options may stand before or behind SCRIPT. It gets those that are none of these, and all that follows `--`.
    """
    check_is_script(script)
    code = compiled(script)
    if name is not None:
        os.environ["DSTREAM_JOB_NAME"] = name
    if os.environ.get("DSTREAM_JOB_LOG"):
        show_lines_of_jobs()
    with connected(engine, master, storage) as context:
        sys.argv = [script, *args]
        # As Python does for a script, unless it runs with -P.
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.realpath(script))
        _execute(code, script, context)


def check_is_script(argument: str) -> None:
    """Refuse an unknown option in the place of a script.

    Raises:
        click.NoSuchOption: it looks like one.
    """
    if argument.startswith("-"):
        raise click.NoSuchOption(argument)


def compiled(script: str) -> CodeType:
    """Return the code of a script; report the fault of one that has none, and end."""
    try:
        with open(script, "rb") as file:
            text = file.read()
    except OSError as error:
        fail(f"the script {script} cannot be read: {error.strerror}", code=2)
    try:
        # The `__future__` imports of this module must not apply to the script.
        return compile(text, os.path.abspath(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        raise SystemExit(1) from None


def _execute(code: CodeType, script: str, context: Context) -> None:
    main = new_main(__file__=os.path.abspath(script), __cached__=None, ctx=context)
    try:
        exec(code, main.__dict__)
    except JobCancelledError as error:
        fail(f"{error}; the script ends where it waits for it", code=INTERRUPTED)
    except Exception as error:
        theirs = error.__traceback__ and error.__traceback__.tb_next  # after the frame of this function
        sys.excepthook(type(error), error.with_traceback(theirs), theirs)
        raise SystemExit(1) from None
