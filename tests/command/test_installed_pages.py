"""`dstream docs` reads the pages that are installed, and every message names one of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dstream.command.pages import pages

ROOT = Path(__file__).parents[2]
PACKAGES = ("collectors", "dstream", "reducers", "sources")
NAMED = re.compile(r"dstream docs ([\w-]+)`")
IN_A_CHECKOUT = re.compile(r"(?<![\w/])docs/[\w/-]+")


def strings_of(path):
    """Return the strings of a module that users can see: all but the docstring of the module and comments."""
    tree = ast.parse(path.read_text("utf-8"))
    return [node.value for part in tree.body[1:] for node in ast.walk(part) if isinstance(node, ast.Constant)]


def test_all_pages_are_listed_with_their_titles(command):
    """Decisions are found by their numbers, and would hide the others."""
    ended = command("docs")

    assert re.search(r"^limits +Limitations$", ended.output, re.MULTILINE)
    assert re.search(r"^how-to/read-files +Read files$", ended.output, re.MULTILINE)
    assert "0058" not in ended.output
    assert ended.output.endswith(f"The pages are in {ROOT / 'docs'}\n")


@pytest.mark.parametrize(
    ("page", "title"),
    [("limits", "Limitations"), ("docs/how-to/read-files.md", "Read files"), ("read-files", "Read files")]
    + [("0058", "58. Share Java's loaded classes by an archive"), ("collectors", "Collectors")],
)
def test_a_page_is_found_by_its_name(command, page, title):
    """Also by its last name alone, as its path in a checkout, and a decision by its number."""
    assert command("docs", page).output.startswith(f"# {title}\n")


def test_a_page_of_the_reference_names_what_help_shows(command):
    """The site makes the rest of it from the docstrings."""
    assert "`help(dstream.IntStream)` in Python shows it.\n" in command("docs", "streams").output


def test_a_page_that_is_not_there_is_one_message(command):
    """With the name that is most like it."""
    ended = command("docs", "limit")

    assert (ended.exit_code, ended.stderr) == (1, "there is no page 'limit'; did you mean 'limits'?\n")


def test_messages_name_pages_that_are_there():
    """By the command that shows them: an installed package has no folder docs beside it."""
    texts = {path: strings_of(path) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    named = {
        page for texts in texts.values() for text in texts if isinstance(text, str) for page in NAMED.findall(text)
    }
    known = {
        name for page, _ in pages() for name in (page.rpartition("/")[2], page.rpartition("/")[2].partition("-")[0])
    }

    assert named >= {"limits", "security", "configure"}
    assert named <= known
    assert {
        str(path): found
        for path, strings in texts.items()
        if path.name != "pages.py"
        and (found := [text for text in strings if isinstance(text, str) and IN_A_CHECKOUT.search(text)])
    } == {}
