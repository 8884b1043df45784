"""`Drawing`: a picture of a plan as text that notebooks show as a picture."""

from __future__ import annotations

from collections.abc import Callable

from dstream.plan.show.dot import as_dot
from dstream.plan.show.html import as_html
from dstream.plan.show.mermaid import as_mermaid
from dstream.plan.show.reasons import with_reasons
from dstream.plan.show.svg import as_svg
from dstream.plan.show.text import as_text
from dstream.plan.stages import Stages

__all__ = ["Drawing", "check_format", "drawn", "show"]

_FORMATS: dict[str, Callable[[Stages], str]] = {
    "text": as_text,
    "dot": as_dot,
    "mermaid": as_mermaid,
    "svg": as_svg,
    "html": as_html,
}


class Drawing(str):
    """A drawing as the text of its format; as the last line of a cell, an SVG or HTML one shows itself.

    Attributes:
        kind: the format, such as `"svg"`.
    """

    kind: str

    def __new__(cls, text: str, kind: str = "text") -> Drawing:
        made = super().__new__(cls, text)
        made.kind = kind
        return made

    def _repr_svg_(self) -> str | None:
        return str(self) if self.kind == "svg" else None

    def _repr_html_(self) -> str | None:
        return str(self) if self.kind == "html" else None


def show(stages: Callable[[], Stages], format: str, *, routes: bool = False) -> Drawing | None:
    """Print stages, if the format is text, or return a drawing of them.

    Args:
        stages: makes them, once the format is known to exist.
        format: one of the choices.
        routes: whether to add the reasons for the way in which functions run.

    Raises:
        ValueError: there is no such format; the message lists the choices.
    """
    check_format(format)
    drawing = drawn(stages(), format, routes=routes)
    if format != "text":
        return drawing
    print(drawing)
    return None


def check_format(format: object) -> None:
    """Refuse an unknown format.

    Raises:
        ValueError: it is none of the choices, which the message lists.
    """
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _FORMATS))}, not {format!r}")


def drawn(stages: Stages, format: str, *, routes: bool = False) -> Drawing:
    """Return the stages in a format; with `routes`, the reasons for the way in which functions run."""
    return Drawing(_FORMATS[format](with_reasons(stages) if routes else stages), format)
