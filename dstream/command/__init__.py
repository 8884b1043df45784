"""The command `dstream`: what one does with streams and collections without writing a program.

`program` finds the subcommands, each in a module of its own, and says errors in one sentence. Nothing in the library
imports this package.
"""

from dstream.command.program import main

__all__ = ["main"]
