"""Count words with a pipeline, and keep two results of one reading: all counts, and the ten most frequent words.

python docs/samples/pipeline_words.py
python docs/samples/pipeline_words.py "books/*.txt" notes.md
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

import dstream as ds
from collectors import counting
from dstream import Pipeline
from reducers import replacing, to_ilist, to_imap
from sources import text_files

WORD = re.compile(r"\w+")


def word_count(paths: list[str]) -> Pipeline:
    """Return a pipeline that reads the files once and writes the map `counts` and the list `top-ten`."""
    pipeline = Pipeline()
    counts = (
        pipeline.read_from(text_files(paths))
        .flat_map(lambda line: WORD.findall(line.lower()))
        .grouping_key(lambda word: word)
        .aggregate(counting())
        .set_name("count")
    )
    counts.write_to(replacing(to_imap("counts")))
    counts.sorted(lambda entry: (-entry.value, entry.key)).limit(10).write_to(replacing(to_ilist("top-ten")))
    return pipeline


def main(paths: list[str]) -> None:
    """Run the pipeline as a job; print what it is, the ten words, and how many there are."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        pipeline = word_count(paths)
        pipeline.explain()
        ctx.new_job(pipeline, name="word-count").join()

        for word, count in ctx.get_list("top-ten"):
            print(f"{count:>9,}  {word}")
        print(f"{len(ctx.get_map('counts')):,} different words")


def package(name: str) -> list[str]:
    """Return the source files of a package of Python's library, some 500 KB on every machine."""
    return [str(path) for path in sorted((Path(sysconfig.get_path("stdlib")) / name).glob("*.py"))]


if __name__ == "__main__":
    main(sys.argv[1:] or package("asyncio"))
