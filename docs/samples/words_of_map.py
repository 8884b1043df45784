"""Count words from a map into a map: the lines of a text lie in one, by their numbers, and the counts go into another.

Both are distributed: each task reads a part of the lines, and the counts stay where they are. Only the ten best ones
come here.

python docs/samples/words_of_map.py
python docs/samples/words_of_map.py books/moby-dick.txt
"""

from __future__ import annotations

import operator
import os
import re
import sys
import sysconfig
from pathlib import Path

import dstream as ds
from reducers import replacing, to_imap

WORD = re.compile(r"[a-z']+")


def license_of_python() -> Path:
    """Return a text that every Python brings along, or the largest module of its library where it does not."""
    home = Path(sysconfig.get_path("stdlib"))
    text = home / "LICENSE.txt"
    return text if text.exists() else home / "typing.py"


def main(text: Path) -> None:
    """Fill the map `lines`, count into the map `counts`, and print the ten most frequent words."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        lines = ctx.get_map("lines", key_type=int, value_type=str)
        lines.clear()
        lines.put_all(enumerate(text.read_text(encoding="utf-8").splitlines()))

        words = lines.stream().flat_map(lambda entry: WORD.findall(entry.value.lower()))
        counts = words.collect(replacing(to_imap("counts", lambda word: word, lambda word: 1, operator.add)))

        print(f"{len(lines):,} lines have {len(counts):,} different words")
        for entry in counts.stream().top(10, key=lambda entry: entry.value):
            print(f"{entry.value:>6,}  {entry.key}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else license_of_python())
