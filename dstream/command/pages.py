"""`dstream docs`: the pages of the documentation, which are installed with the packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

import dstream
from dstream.base.showing import did_you_mean
from dstream.command.program import SAYING
from dstream.errors import NoSuchElementError

__all__ = ["docs", "pages"]

_FOLDERS = ("", "concepts", "how-to", "reference", "samples", "decisions")
"""The folders in the order of reading; a page is found by its last name alone, in the first folder that has it."""

_OBJECT = re.compile(r"^::: (\S+)(\n +.*)*", re.MULTILINE)
"""The place of the reference of an object in the site, which `help()` shows too."""


@click.command(context_settings=SAYING)
@click.argument("page", required=False)
def docs(page: str | None) -> None:
    """Read the documentation.

    PAGE is a name such as 'limits' or 'read-files', or the number of a decision, such as 0058. Without one, the pages
    are listed with their titles.
    """
    known = dict(pages())
    if page is None:
        for name, place in known.items():
            if not name.startswith("decisions/"):
                click.echo(f"{name:<36}{_title(place.read_text('utf-8'))}")
        click.echo(f"\nThe pages are in {_folder()}")
        return
    name = _found(page.removeprefix("docs/").removesuffix(".md"), list(known))
    click.echo_via_pager(_OBJECT.sub(r"`help(\1)` in Python shows it.", known[name].read_text("utf-8")))


def pages() -> Iterator[tuple[str, Traversable]]:
    """Yield each page with its name: its path below the folder of all pages, without `.md`."""
    for name in _FOLDERS:
        folder = _folder() / name if name else _folder()
        for file in sorted(folder.iterdir(), key=lambda each: each.name):
            if file.name.endswith(".md"):
                yield f"{name}/{file.name[:-3]}".lstrip("/"), file


def _folder() -> Traversable:
    """Return the folder of the pages: inside of the package in a wheel, zipped or not, else that of the checkout."""
    installed = files(dstream) / "docs"
    return installed if installed.is_dir() else Path(dstream.__file__).parents[1] / "docs"


def _found(page: str, known: list[str]) -> str:
    for name in known:
        if page in (name, name.rpartition("/")[2]) or (page.isdecimal() and name.startswith(f"decisions/{page}-")):
            return name
    meant = did_you_mean(page, (short for name in known for short in (name, name.rpartition("/")[2])))
    raise NoSuchElementError(f"there is no page {page!r}; {meant or 'dstream docs lists them'}")


def _title(text: str) -> str:
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "")
