"""The command `dstream`: streams and collections without a program.

`program` finds the subcommands, each in a module of its own, and prints errors in one sentence. No module of the
library imports this package.

- `run`: a script with a context.
- `shell`: a prompt with a context.
- `submission`: a script in a supervised driver, with a log and restarts.
- `jobs`: the jobs of a storage and the logs of their drivers.
- `collections`: the collections of a storage, and their export to files.
- `doctor`: the health of an installation; `checks` has the quick checks, `probe` the slow ones in processes.
- `pages`: the pages of the documentation.
- `wordcount`: the words of text files, counted into a map.
"""

from __future__ import annotations

from dstream.command.program import main

__all__ = ["main"]
