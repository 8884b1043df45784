"""Find the words that tell a document from the others: TF-IDF as an inverted index in a distributed map.

A word scores in a document how often it is there, times the logarithm of how rare the documents are that have it.

python docs/samples/tf_idf.py
python docs/samples/tf_idf.py "books/*.txt"
"""

from __future__ import annotations

import keyword
import math
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import dstream as ds
from collectors import counting, mapping, to_list, to_set
from dstream import Entry, Pipeline
from reducers import replacing, to_imap
from sources import text_files

WORD = re.compile(r"[a-z]{2,}")
STOP_WORDS = {*keyword.kwlist, "self"}


def inverted_index(paths: list[str]) -> Pipeline:
    """Return a pipeline that writes `word -> [(score, document), ...]` into the map `index`, best documents first."""
    pipeline = Pipeline()
    lines = pipeline.read_from(text_files(paths, with_path=True)).set_name("lines")
    how_many = lines.map(lambda line: line[0]).aggregate(to_set()).map(len).set_name("documents")
    holding = (
        lines.flat_map(words)
        .grouping_key(lambda pair: pair)
        .aggregate(counting(), to=lambda pair, count: (pair[1], (pair[0], count)))
        .grouping_key(lambda counted: counted[0])
        .aggregate(mapping(lambda counted: counted[1], to_list()))
        .set_name("holding")
    )
    everything = (lambda entry: 0, lambda count: 0)  # There is one number of documents, and it belongs to each word.
    scored = holding.hash_join(how_many, on=everything, to=lambda entry, total: scores(entry, total or 1))
    scored.filter(lambda entry: len(entry.value) > 0).write_to(replacing(to_imap("index")))
    return pipeline


def words(line: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Return a pair of the document and the word for each word of a line that is no stop word."""
    document, text = line
    return ((document, word) for word in WORD.findall(text.lower()) if word not in STOP_WORDS)


def scores(entry: Entry[str, list[tuple[str, int]]], total: int) -> Entry[str, list[tuple[float, str]]]:
    """Score the documents that have a word; one that all have scores nothing and tells nothing."""
    weight = math.log(total / len(entry.value))
    found = [(count * weight, document) for document, count in entry.value] if weight else []
    return Entry(entry.key, sorted(found, reverse=True))


def main(paths: list[str]) -> None:
    """Print the best documents for some words, and the words that are best in them."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(inverted_index(paths), name="tf-idf").join()
        index = ctx.get_map("index", key_type=str)
        print(f"{len(index):,} words")
        for word in ("socket", "semaphore", "subprocess"):
            best = [f"{Path(document).name} {score:.1f}" for score, document in index.get(word, [])[:3]]
            print(f"{word:>12}: {', '.join(best) or 'nowhere'}")


def package(name: str) -> list[str]:
    """Return the source files of a package of Python's library."""
    return [str(path) for path in sorted((Path(sysconfig.get_path("stdlib")) / name).glob("*.py"))]


if __name__ == "__main__":
    main(sys.argv[1:] or package("asyncio"))
