"""Counts words in processes of different hash seeds: `python counting_words.py STORAGE WORDS`."""

from __future__ import annotations

import sys
import time

import dstream as ds
from collectors import counting
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed

__all__ = ["main"]


def main() -> None:
    """Count the words behind those that the job has counted, and say the counts; then wait for the end."""
    words, pipeline = sys.argv[2].split(), ds.Pipeline()
    stage = pipeline.read_from(Feed({"0": words}))
    stage.grouping_key(str).rolling_aggregate(counting()).write_to(to_ilist("counts"))
    with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
        job = ctx.new_job(pipeline, name="words")
        while len(ctx.get_list("counts")) < len(words):
            time.sleep(0.01)
        print(sorted((entry.key, entry.value) for entry in ctx.get_list("counts")), flush=True)
        print("counted", flush=True)
        job.join()


if __name__ == "__main__":
    main()
