"""The command `dstream`: streams and collections without a program.

`program` finds the subcommands, each in a module of its own, and prints errors in one sentence. `doctor` shows the
findings of `checks` and `probe`. No module of the library imports this package.
"""

from __future__ import annotations

from dstream.command.program import main

__all__ = ["main"]
