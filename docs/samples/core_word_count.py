"""Count words with a graph of vertices and edges: each processor counts its own share first, so that little moves.

python docs/samples/core_word_count.py
python docs/samples/core_word_count.py "books/*.txt" notes.md
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

import dstream as ds
from collectors import counting
from dstream.core import DAG, Edge, entry_key, processors, whole_item
from reducers import replacing, to_imap
from sources import text_files

WORD = re.compile(r"\w+")


def word_count(paths: list[str]) -> DAG:
    """Return a graph that writes `word -> count` into the map `counts`."""
    dag = DAG()
    lines = dag.new_vertex("lines", processors.read(text_files(paths)))
    words = dag.new_vertex("words", processors.flat_map(lambda line: WORD.findall(line.lower())))
    local = dag.new_vertex("local", processors.accumulate_by_key([whole_item], counting()))
    total = dag.new_vertex("total", processors.combine_by_key(counting()))
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("counts"))))
    dag.edge(Edge.between(lines, words))
    dag.edge(Edge.between(words, local))  # Any processor may count any word,
    dag.edge(Edge.between(local, total).distributed().partitioned(entry_key))  # and one of them adds up its counts.
    return dag.edge(Edge.between(total, sink))


def main(paths: list[str]) -> None:
    """Run the graph as a job; print it, the ten most frequent words, and how many items its vertices sent."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        dag = word_count(paths)
        print(dag)
        job = ctx.new_job(dag, name="core-word-count")
        job.join()

        counts = ctx.get_map("counts")
        for word, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:10]:
            print(f"{count:>9,}  {word}")
        sent = {name: metrics.items_out for name, metrics in job.metrics().stages.items()}
        print(f"{sent['words']:,} words became {sent['local']:,} counts on the edge, and {len(counts):,} in the map")


def package(name: str) -> list[str]:
    """Return the source files of a package of Python's library, some 500 KB on every machine."""
    return [str(path) for path in sorted((Path(sysconfig.get_path("stdlib")) / name).glob("*.py"))]


if __name__ == "__main__":
    main(sys.argv[1:] or package("asyncio"))
