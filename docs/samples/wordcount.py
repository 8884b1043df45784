"""Count words into a distributed map, on Spark: of the files named, or of Python's own library.

The map lives on in the folder `dstream-data`, where look_up.py finds it.

python docs/samples/wordcount.py
python docs/samples/wordcount.py "books/*.txt" notes.md
"""

from __future__ import annotations

import operator
import re
import sys
import sysconfig
import time
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


def main(paths: list[str]) -> None:
    """Count the words of `paths` into the map `counts`; print the ten most frequent, the time, and what ran where."""
    files = paths or standard_library()
    with ds.connect() as ctx:
        started = time.perf_counter()
        lines = ctx.read(text_files(files))
        words = lines.flat_map(lambda line: WORD.findall(line.lower()))
        counts = words.collect(replacing(to_imap("counts", lambda word: word, lambda word: 1, operator.add)))
        seconds = time.perf_counter() - started

        for word, count in counts.stream().sorted(key=lambda entry: (-entry.value, entry.key)).limit(10):
            print(f"{count:>9,}  {word}")
        total = counts.stream().map_to_int(lambda entry: entry.value).sum()
        print(f"\n{total:,} words, {len(counts):,} of them different, in {seconds:.1f} s with start-up")
        print(
            f"the lines were read, and the words counted and written into the map {counts.name!r}, "
            f"by Spark {ctx.spark.version}, {ctx.spark.conf.get('spark.master')}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
