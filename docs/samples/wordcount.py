"""Count words into a distributed map: of a megabyte of text at once, then of all text on Spark, by the same plan.

The text is that of the files named, or of Python's own library. The map lives on in the folder `dstream-data`, where
look_up.py finds it.

python docs/samples/wordcount.py
python docs/samples/wordcount.py "books/*.txt" notes.md
"""

from __future__ import annotations

import operator
import os
import re
import sys
import sysconfig
import time
from glob import glob
from itertools import accumulate, islice
from pathlib import Path

import dstream as ds
from reducers import replacing, to_imap
from sources import text_files

WORD = re.compile(r"\w+")
OTHERS = {"site-packages", "test", "tests"}


def standard_library() -> list[str]:
    """Return the source files of Python's standard library without its tests: 11 MB of text on every machine."""
    home = Path(sysconfig.get_path("stdlib"))
    found = sorted(path for path in home.rglob("*.py") if OTHERS.isdisjoint(path.relative_to(home).parts))
    return [str(path) for path in found if is_utf8(path)]


def is_utf8(path: Path) -> bool:
    """Say whether a file is text in UTF-8, as almost all of the library is."""
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def first_files(files: list[str]) -> list[str]:
    """Return the first files that have about a megabyte together, at least one."""
    sizes = accumulate(os.path.getsize(path) for path in files)
    return files[:1] + [path for path, size in zip(files[1:], islice(sizes, 1, None), strict=False) if size <= 2**20]


def count_words(ctx: ds.Context, files: list[str]) -> float:
    """Count the words of files into the map `counts`; print the ten most frequent, and return the seconds it took."""
    started = time.perf_counter()
    words = ctx.read(text_files(files)).flat_map(lambda line: WORD.findall(line.lower()))
    counts = words.collect(replacing(to_imap("counts", lambda word: word, lambda word: 1, operator.add)))
    for word, count in counts.stream().sorted(key=lambda entry: (-entry.value, entry.key)).limit(10):
        print(f"{count:>9,}  {word}")
    total = counts.stream().map_to_int(lambda entry: entry.value).sum()
    seconds = time.perf_counter() - started
    print(f"\n{total:,} words, {len(counts):,} of them different, in {len(files):,} files")
    return seconds


def main(paths: list[str]) -> None:
    """Count the words of the first files where that ends sooner, then those of all files on Spark."""
    files = [path for each in paths for path in sorted(glob(each)) or [each]] or standard_library()
    with ds.connect() as ctx:
        print(f"connect() took {count_words(ctx, first_files(files)):.2f} s for them\n")
    try:
        with ds.connect(engine="spark") as ctx:
            seconds = count_words(ctx, files)
            print(f"Spark {ctx.spark.version} took {seconds:.2f} s for them, with its start")
    except ds.errors.SetupError as error:
        print(f"All {len(files):,} files were not counted on Spark: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
