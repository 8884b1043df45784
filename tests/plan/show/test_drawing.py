"""Drawings: texts that notebooks show as pictures."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ET

import pytest

from dstream.explain.drawing import check_format, drawn


@pytest.mark.parametrize(("kind", "svg", "html"), [("svg", True, False), ("html", False, True), ("dot", False, False)])
def test_a_drawing_shows_itself_if_it_is_a_picture(chain, kind, svg, html):
    """SVG and HTML have the method that notebooks ask for; it is the text itself."""
    drawing = drawn(chain(2), kind)

    assert drawing._repr_svg_() == (str(drawing) if svg else None)
    assert drawing._repr_html_() == (str(drawing) if html else None)


def test_a_drawing_is_a_text(chain):
    """It can be written to a file, and keeps its kind when it is pickled."""
    drawing = drawn(chain(1), "svg")

    assert isinstance(drawing, str)
    assert (pickle.loads(pickle.dumps(drawing)), pickle.loads(pickle.dumps(drawing)).kind) == (drawing, "svg")


@pytest.mark.parametrize("wrong", ["png", "", "SVG", None, ["svg"]])
def test_a_format_that_nobody_draws_is_refused(wrong):
    """The message lists the choices."""
    with pytest.raises(ValueError, match="format must be one of 'text', 'dot', 'mermaid', 'svg', 'html', not"):
        check_format(wrong)


def test_html_is_the_picture_and_a_table(chain, wicked):
    """Both are well-formed, and the table has the whole path."""
    for stages in (chain(3), wicked):
        ET.fromstring(drawn(stages, "html"))
    text = drawn(chain(3), "html")

    assert ("<svg" in text, "<script" in text, "/x/words.py:2</td>" in text) == (True, False, True)
    assert len(drawn(chain(20_000), "html")) < 100_000
