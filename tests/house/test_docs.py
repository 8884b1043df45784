"""The code on every page of the documentation runs.

The blocks of one page run in order, in one process, from an empty folder. A block that cannot run
says why in a comment right above it: `<!-- not run: it needs a cluster -->`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"  # they quote what was tried, also what failed
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md") if DECISIONS not in path.parents)
SERVERS = {"docs/how-to/use-kafka.md": ("KAFKA", "broker")}
"""What a page finds the address of a server in, and the fixture that starts that."""
WITH_JAVA = {"docs/concepts/engines.md", "docs/index.md"}
"""The pages about the default engine, which Java of `spark-submit` decides: they start their own."""

EXAMPLE = """\
# A page

```python
first = 1
```

<!-- not run: it needs a cluster -->
```python
undefined_name
```

```text
not Python
```

1. A list.

    ```python title="with a title"
    import sys
    print(first, sys._getframe().f_lineno)
    ```
"""


@pytest.mark.parametrize("path", PAGES)
def test_docs_run(path, page, run_blocks, request, monkeypatch):
    """Every Python block of the page runs after those above it; where it needs a server, with the address of one."""
    blocks = page(path).python()
    if path in SERVERS:
        name, fixture = SERVERS[path]
        monkeypatch.setenv(name, request.getfixturevalue(fixture).address)

    if blocks:
        run_blocks(blocks, path in WITH_JAVA)


@pytest.mark.parametrize("path", PAGES)
def test_docs_give_a_reason_for_each_block_that_is_not_run(path, page):
    """A `not run` comment holds a reason and stands right above a block."""
    this = page(path)

    assert len(re.findall(r"<!-- *not run", this.text)) == sum(block.excluded for block in this.blocks)


@pytest.mark.parametrize("path", PAGES)
def test_docs_pages_begin_with_a_paragraph(path, page):
    """Below its title a page says what it gives, before its first code, table or heading."""
    title, first, *_ = page(path).text.split("\n\n")

    assert re.fullmatch("# .+", title)
    assert re.match(r"[A-Z]|`\w", first)


def test_docs_index_lists_every_page():
    """A reader finds each page from the first one, by a link that leads somewhere."""
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / "docs" / "index.md").read_text())

    assert {f"docs/{link}" for link in linked} == {*PAGES, "docs/decisions/README.md"} - {"docs/index.md"}


def test_docs_blocks_run_in_one_namespace_on_the_lines_of_their_page(page, run_blocks, tmp_path):
    """A name lives on in later blocks, other blocks are left out, a traceback names the line of the page."""
    (tmp_path / "example.md").write_text(EXAMPLE)

    assert run_blocks(page(tmp_path / "example.md").python()) == "1 20\n"


def test_docs_blocks_that_fail_are_reported(page, run_blocks, tmp_path):
    """A block that raises fails its page, with the traceback in the message."""
    (tmp_path / "example.md").write_text(EXAMPLE.replace("not run", "run"))

    with pytest.raises(AssertionError, match="undefined_name"):
        run_blocks(page(tmp_path / "example.md").python())
