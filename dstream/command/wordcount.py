"""`dstream wordcount`: the words of text files, counted into a distributed map."""

from __future__ import annotations

import operator
import re

import click

from dstream.command.program import SAYING, connected, engine_options
from dstream.reducers import replacing, to_imap
from dstream.sources import text_files

__all__ = ["wordcount"]

_WORD = re.compile(r"\w+")


@click.command(context_settings=SAYING)
@engine_options
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--top", default=10, show_default=True, type=click.IntRange(0), help="How many words to print.")
@click.option(
    "--into", default="wordcount", show_default=True, metavar="NAME", help="The map; what it held is replaced."
)
def wordcount(
    paths: tuple[str, ...], top: int, into: str, engine: str | None, master: str | None, storage: str | None
) -> None:
    """Count the words of text files.

    The counts become a distributed map. The most frequent words are printed; among equals, the first of the alphabet.
    PATH is a file or a pattern such as 'books/*.txt'.
    """
    with connected(engine, master, storage) as context:
        words = context.read(text_files(list(paths))).flat_map(lambda line: _WORD.findall(line.lower()))
        counts = words.collect(replacing(to_imap(into, lambda word: word, lambda _: 1, operator.add)))
        for word, count in counts.stream().sorted(key=lambda entry: (-entry.value, entry.key)).limit(top):
            click.echo(f"{count:>9,}  {word}")
        click.echo(f"\nthe map {counts.name!r} holds {len(counts):,} words", err=True)
