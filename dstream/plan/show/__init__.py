"""A plan for people: `chain` writes the calls that build it, the rest draws the stages it runs as.

`folding` bounds what is drawn, `wording` says it, `text`, `dot`, `mermaid`, `svg` and `html` write it,
and `drawing` chooses among them.
"""

from dstream.plan.show.chain import describe
from dstream.plan.show.drawing import Drawing, check_format, drawn

__all__ = ["Drawing", "check_format", "describe", "drawn"]
