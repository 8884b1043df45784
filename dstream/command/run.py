"""`dstream run`: a script with a context."""

from __future__ import annotations

import os
import sys
from types import CodeType

import click

from dstream.command.main_module import new_main
from dstream.command.options import connected, engine_options, fail
from dstream.command.program import SAYING
from dstream.session import Context

__all__ = ["compiled", "run"]


@click.command(context_settings={**SAYING, "allow_interspersed_args": False})
@engine_options
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(script: str, args: tuple[str, ...], engine: str | None, master: str | None, storage: str | None) -> None:
    """Run a Python script with a context.

    SCRIPT runs as `python SCRIPT ARGS` would run it, with an open context as the global name `ctx`, which is closed
    at the end. What stands after SCRIPT belongs to the script.
    """
    code = compiled(script)
    with connected(engine, master, storage) as context:
        sys.argv = [script, *args]
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.realpath(script))
        _execute(code, script, context)


def compiled(script: str) -> CodeType:
    """Return the code of a script; say what is wrong with one that has none, and end."""
    try:
        with open(script, "rb") as file:
            text = file.read()
    except OSError as error:
        fail(f"the script {script} cannot be read: {error.strerror}", code=2)
    try:
        return compile(text, os.path.abspath(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        raise SystemExit(1) from None


def _execute(code: CodeType, script: str, context: Context) -> None:
    main = new_main(__file__=os.path.abspath(script), __cached__=None, ctx=context)
    try:
        exec(code, main.__dict__)
    except Exception as error:
        theirs = error.__traceback__ and error.__traceback__.tb_next  # after the frame of this function
        sys.excepthook(type(error), error.with_traceback(theirs), theirs)
        raise SystemExit(1) from None
