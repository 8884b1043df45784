"""Progress: the one line that says what a long job does.

`line` writes it, `displays` draw it (terminal, notebook, plain lines), the `board` knows which
operations wait and decides when it is drawn, `operations` are what engines report about. Nothing
here knows an engine: each gives its own `Facts` when it is asked.
"""

from dstream.engine.progress.line import Facts
from dstream.engine.progress.operations import Call, Operation, Progress

__all__ = ["Call", "Facts", "Operation", "Progress"]
