"""The README keeps its word: its example prints what it says, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(page):
    """The first Python block, and the text block below it."""
    blocks = page("README.md").blocks
    first = next(position for position, block in enumerate(blocks) if block.language == "python")
    return blocks[first], blocks[first + 1].code


def test_readme_example_prints_what_the_readme_says(example, run_blocks):
    """It runs as it stands on Spark, as `spark-submit` would run it."""
    code, output = example

    assert run_blocks([code]) == output


def test_readme_example_needs_no_java(example, run_blocks):
    """By default it runs in its own process."""
    code, output = example

    assert run_blocks([code], has_own_java=True, PATH="", JAVA_HOME="") == output


def test_readme_example_is_short(page):
    """About ten lines say what the project is for."""
    example = page("README.md").python()[0]

    assert len([line for line in example.code.splitlines() if line.strip()]) <= 12


def test_readme_leads_a_newcomer_in_order():
    """It opens with its subject, an example and two commands; then at most eight groups of links, quickstart first."""
    text = (ROOT / "README.md").read_text()
    groups = re.findall(r"^\| (.*) \| (.*) \|$", text.partition("## Where to go next")[2], re.MULTILINE)[1:]
    positions = [
        text.index(part) for part in ("`java.util.stream`", "```python", "`make demo`", "`make test`", "## Where")
    ]

    assert positions == sorted(positions)
    assert "docs/index.md" in groups[0][1]
    assert len(groups) <= 8
    assert [name for name, links in groups if links.count("](") > 6] == []


def test_readme_explains_a_reducer_before_its_first_use():
    """A reducer is an operation on numbers elsewhere, and a sink here."""
    text = (ROOT / "README.md").read_text()

    assert text.index("reducer is a sink") < text.index("reducers import")


def test_readme_names_only_commands_that_exist():
    """Each `make` command in the README is a target of the Makefile, `demo` and `test` among them."""
    named = set(re.findall(r"\bmake ([a-z]+)\b", (ROOT / "README.md").read_text()))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {"demo", "test"} <= named <= targets


def test_readme_links_lead_somewhere():
    """Every relative link of the README is a file or folder of the repository."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())

    assert [link for link in links if not (ROOT / link).exists()] == []
