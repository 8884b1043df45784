"""Files, functions and collections as ends of one plan: each gets all items, computed once."""

from __future__ import annotations

import uuid
from io import TextIOWrapper
from pathlib import Path

from dstream.plan import explained, rewrite
from dstream.plan.operations.ends import Several
from dstream.plan.operations.streams import Fork
from dstream.stream import Stream
from dstream.stream.runtime import writing
from reducers import sink_from, to_files, to_ilist, to_logger, to_nothing


def test_a_fork_feeds_every_sink(engine, tmp_path):
    """In one run, from the same tasks; what `collect` would give of each is there afterwards."""
    name = uuid.uuid4().hex
    fork = Stream(Fork(engine.stream(range(6), 3).map(lambda n: n * n)._node), None)
    opened = lambda: (tmp_path / uuid.uuid4().hex).open("w")  # noqa: E731
    noted = sink_from(opened, lambda file, n: print(n, file=file), destroy=TextIOWrapper.close)
    sinks = [to_files(tmp_path / "out"), to_nothing(), noted, to_ilist(name), to_logger()]
    targets = [sink.open(engine.context) for sink in sinks]
    jobs = [target.begin(None) for target in targets]
    plan = Several(tuple(writing(fork._node, *each) for each in zip(sinks, [j.writer for j in jobs], strict=True)))
    with explained(plan, "write_to"):
        receipts = engine.context.running_engine().submit(rewrite(plan)).result()
    for job, each in zip(jobs, receipts, strict=True):
        job.commit(each)

    squares = [0, 1, 4, 9, 16, 25]
    assert list(targets[3].result()) == squares
    assert [int(line) for path in targets[0].result() for line in Path(path).read_text().split()] == squares
    assert sorted(int(n) for path in tmp_path.glob("?*") if path.is_file() for n in path.read_text().split()) == squares
