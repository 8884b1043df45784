"""The stages in the language of Graphviz, read by a small parser of that language."""

from __future__ import annotations

import re

from dstream.explain.text import as_dot

_STRING = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"(?:{_STRING}|\w+)"
_ATTRIBUTES = rf"\[\w+={_VALUE}(?:, \w+={_VALUE})*\]"
_STATEMENT = re.compile(
    rf"(?P<setting>\w+={_VALUE})|(?P<edge>\w+ -> \w+)(?: {_ATTRIBUTES})?|(?P<node>\w+) {_ATTRIBUTES}", re.DOTALL
)


def parsed(text: str) -> tuple[list[str], list[str]]:
    """Return the nodes and the edges; anything that is no statement fails."""
    assert text.startswith("digraph dstream {\n")
    assert text.endswith("\n}")
    nodes, edges, position = [], [], text.index("\n") + 1
    while text[position:].strip() != "}":
        found = _STATEMENT.match(text, position + len(text[position:]) - len(text[position:].lstrip()))
        assert found is not None, text[position : position + 100]
        assert text[found.end()] == ";", text[found.start() : found.end() + 20]
        position = found.end() + 1
        nodes += [found["node"]] if found["node"] else []
        edges += [found["edge"]] if found["edge"] else []
    return nodes, edges


def test_dot_has_a_node_for_each_stage_and_an_edge_for_each_exchange(chain):
    """Boxes, arrows, and the end."""
    assert parsed(as_dot(chain(3))) == (["node", "s0", "s1", "s2", "end"], ["s0 -> s1", "s1 -> s2", "s2 -> end"])


def test_dot_escapes_what_means_something_to_it(wicked):
    """Quotes and backslashes of the user end no string and begin no escape."""
    text = as_dot(wicked)

    assert parsed(text) == (["node", "s0", "s1", "end"], ["s0 -> s1", "s1 -> end"])
    assert r"\"quoted\" <b>&amp; [x]" in text
    assert r"-->\\l\\ 'é'" in text


def test_dot_of_a_large_plan_is_bounded(chain, fan):
    """20,000 stages are a few dozen boxes."""
    assert len(parsed(as_dot(chain(20_000)))[0]) < 30
    assert len(parsed(as_dot(fan(20_000)))[1]) < 60
