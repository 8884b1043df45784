"""`dstream shell`: a prompt with a context and the names of dstream."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import click

from dstream.base.environment import VERSION
from dstream.command.program import SAYING, connected, engine_options
from dstream.command.run import new_main
from dstream.session import Context

__all__ = ["shell"]

_REMEMBERED = 10_000


@click.command(context_settings=SAYING)
@engine_options
@click.option("--plain", is_flag=True, help="Use Python's own prompt, also if IPython is installed.")
def shell(engine: str | None, master: str | None, storage: str | None, plain: bool) -> None:
    """Open a prompt with a context.

    The context is `ctx`; the names of dstream, collectors, reducers and sources are there. Ctrl-C gives the prompt
    back, Ctrl-D leaves and closes the context.
    """
    with connected(engine, master, storage, is_for_a_prompt=True) as context:
        banner = f"dstream {VERSION}, engine {context.engine}: ctx is the context, Ctrl-D leaves"
        if plain or find_spec("IPython") is None or not sys.stdin.isatty():
            _plain(banner, names(context))
        else:
            _ipython(banner, names(context))


def names(context: Context) -> dict[str, Any]:
    """Return the global names of the prompt."""
    import dstream
    from dstream import collectors, reducers, sources

    modules = (dstream, collectors, reducers, sources)
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {**public, "ds": dstream, "ctx": context}


def _plain(banner: str, known: dict[str, Any]) -> None:
    from code import InteractiveConsole

    namespace = new_main(**known).__dict__
    with suppress(ImportError):  # a Python that was built without it
        _complete_and_remember(namespace)
    InteractiveConsole(namespace).interact(banner, exitmsg="")


def _complete_and_remember(namespace: dict[str, Any]) -> None:
    import readline
    import rlcompleter

    readline.set_completer(rlcompleter.Completer(namespace).complete)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    history = _history()
    with suppress(OSError):  # There is no history before the first time.
        readline.read_history_file(history)
    readline.set_history_length(_REMEMBERED)
    atexit.register(_remember, history)


def _remember(history: str) -> None:
    import readline

    with suppress(OSError):
        os.makedirs(os.path.dirname(history), mode=0o700, exist_ok=True)
        readline.write_history_file(history)


def _history() -> str:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(home, "dstream", "history")


def _ipython(banner: str, known: dict[str, Any]) -> None:
    import IPython
    from traitlets.config import Config

    config = Config()
    config.TerminalInteractiveShell.banner1 = f"{banner}\n"
    config.TerminalInteractiveShell.banner2 = ""
    config.TerminalInteractiveShell.confirm_exit = False
    IPython.start_ipython(argv=[], user_ns=known, config=config)
