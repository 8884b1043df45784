"""Find the words that tell a document from the others, with a graph: TF-IDF, where one edge has to wait for another.

The number of documents comes to every scorer before the first word does: by an edge of an earlier priority.

python docs/samples/core_tf_idf.py "books/*.txt"
"""

from __future__ import annotations

import keyword
import math
import os
import re
import sys
import sysconfig
from operator import itemgetter
from pathlib import Path

import dstream as ds
from collectors import counting, mapping, to_list, to_set
from dstream import Entry
from dstream.core import DAG, AbstractProcessor, Edge, entry_key, entry_value, processors, whole_item
from reducers import replacing, to_imap
from sources import text_files

WORD = re.compile(r"[a-z]{2,}")
STOP_WORDS = {*keyword.kwlist, "self"}


def words(line: tuple[str, str]) -> list[tuple[str, str]]:
    """Return (word, document) for each word of a line that is no stop word."""
    return [(word, line[0]) for word in WORD.findall(line[1].lower()) if word not in STOP_WORDS]


class Scores(AbstractProcessor):
    """Emits (word, [(score, document), ...]), best first, unless all documents have the word; edge 1 says how many."""

    def try_process1(self, item: set[str]) -> bool:
        """Keep how many documents there are."""
        self.total = len(item)
        return True

    def try_process0(self, item: Entry[str, list[tuple[int, str]]]) -> bool:
        """Score the documents that have a word."""
        weight = math.log(self.total / len(item.value))
        scores = sorted(((count * weight, document) for count, document in item.value), reverse=True)
        return not weight or self.try_emit(Entry(item.key, scores))


def inverted_index(paths: list[str]) -> DAG:
    """Return a graph that writes `word -> [(score, document), ...]` into the map `index`."""
    dag, all_documents = DAG(), mapping(itemgetter(0), to_set())
    counted = processors.aggregate_by_key([whole_item], counting(), lambda pair, count: (pair[0], (count, pair[1])))
    lines = dag.new_vertex("lines", processors.read(text_files(paths, with_path=True)))
    named = dag.new_vertex("named", processors.accumulate(all_documents))
    total = dag.new_vertex("total", processors.combine(all_documents)).local_parallelism(1)
    word = dag.new_vertex("word", processors.flat_map(words))
    count = dag.new_vertex("count", counted)
    held = dag.new_vertex("held", processors.aggregate_by_key([entry_key], mapping(entry_value, to_list())))
    scores = dag.new_vertex("scores", Scores)
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("index"))))
    dag.edge(Edge.between(lines, word)).edge(Edge.from_(lines, 1).to(named)).edge(Edge.between(named, total))
    dag.edge(Edge.between(word, count).partitioned(whole_item)).edge(Edge.between(count, held).partitioned(entry_key))
    dag.edge(Edge.between(held, scores)).edge(Edge.between(scores, sink))
    return dag.edge(Edge.from_(total).to(scores, 1).broadcast().priority(-1))


def main(paths: list[str]) -> None:
    """Print the best documents for some words."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(inverted_index(paths), name="core-tf-idf").join()
        index = ctx.get_map("index", key_type=str)
        print(f"{len(index):,} words")
        for word in ("socket", "semaphore", "subprocess"):
            print(f"{word:>12}:", *(f"{Path(at).name} {score:.1f}" for score, at in index.get(word, [])[:3]))


if __name__ == "__main__":
    main(sys.argv[1:] or sorted(str(path) for path in (Path(sysconfig.get_path("stdlib")) / "asyncio").glob("*.py")))
