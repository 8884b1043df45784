"""Count words with a fluent expression, on Spark: of the files named, or of Python's own library.

python docs/samples/wordcount.py
python docs/samples/wordcount.py "books/*.txt" notes.md
"""

from __future__ import annotations

import re
import sys
import sysconfig
import time
from pathlib import Path

import dstream as ds
from collectors import counting, grouping_by
from dstream import Entry
from sources import text_files

WORD = re.compile(r"\w+")


def standard_library() -> list[str]:
    """Return the source files of Python's standard library: 10 MB of text on every machine."""
    home = Path(sysconfig.get_path("stdlib"))
    return [str(path) for path in sorted(home.rglob("*.py")) if is_utf8(path) and "site-packages" not in path.parts]


def is_utf8(path: Path) -> bool:
    """Say whether a file is text in UTF-8; a few tests of the library are not, on purpose."""
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def main(paths: list[str]) -> None:
    """Count the words of `paths`, and print the ten most frequent, the time, and what ran where."""
    files = paths or standard_library()
    with ds.connect() as ctx:
        started = time.perf_counter()
        lines = ctx.read(text_files(files))
        words = lines.flat_map(lambda line: WORD.findall(line.lower()))
        counts = words.collect(grouping_by(lambda word: word, counting()))
        seconds = time.perf_counter() - started

        entries = ctx.stream(counts.items()).map(lambda pair: Entry(*pair))
        for word, count in entries.sorted(key=lambda entry: -entry.value).limit(10):
            print(f"{count:>9,}  {word}")
        print(f"\n{sum(counts.values()):,} words, {len(counts):,} of them different, in {seconds:.1f} s with start-up")
        print(
            f"the lines were read and the words counted by Spark {ctx.spark.version}, {ctx.spark.sparkContext.master};"
        )
        print("this process got one count for each word")


if __name__ == "__main__":
    main(sys.argv[1:])
