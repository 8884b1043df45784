"""SIGKILL of writers at any moment, many times; `DSTREAM_KILLS` says how often."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

KILLS = int(os.environ.get("DSTREAM_KILLS", "30"))

_RESTARTED = """
import os, random, signal, sys
from dstream.spi.store import Options, Splice
from dstream.storage import Settings, open_storage
from dstream.delta import checkpoints
checkpoints.COLLECTION_CHECKPOINT_INTERVAL = 5

def write(path, first, pipe):
    storage = open_storage(path, Settings())
    store = storage.create("map", "m", Options(buckets=2))
    items = storage.create("list", "l", Options())
    for n in range(first, first + 1000):
        store.update(["left", "right", n % 97], lambda old: [n, n, n])
        items.extend([n, n])
        job = store.begin(f"job-{n}")
        job.commit(list(job.writer.write_bucket(job.writer.bucket_of("job"), iter([("job", n)]))))
        if n % 9 == 0:
            store.compact()
        if n % 13 == 0:
            items.edit(lambda view: Splice(0, max(view.size - 4, 0), []))
        os.write(pipe, b"%d\\n" % n)

path, kills = sys.argv[1], int(sys.argv[2])
random.seed(kills)
last = 0
for _ in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(path, last + 1, writer)
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        for _ in range(random.randint(0, 6)):
            last = int(pipe.readline() or last)
        for _ in range(random.randint(0, 60_000)):
            pass  # the moment of the kill falls anywhere into the next change
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for line in pipe:
            last = int(line)
    print(last, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def killed(lake):
    """Give the last acknowledged number after each kill; the next writer starts when the test asks for it."""
    command = [sys.executable, "-c", _RESTARTED, str(lake.path), str(KILLS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def rounds():
            for line in process.stdout:
                yield int(line)
                process.stdin.write("\n")
                process.stdin.flush()

        yield rounds()
        process.stdin.close()


def test_killed_writers_leave_the_last_acknowledged_state(lake, killed):
    """Nothing that was acknowledged is lost, nothing is half, for handles old and new; the numbers go on."""
    store, items = lake.map(buckets=2), lake.list()
    rounds = 0
    for acknowledged in killed:
        rounds += 1
        for handle in (store, lake.map()):
            left, right, last, job = handle.get_many(["left", "right", acknowledged % 97, "job"])
            assert left == right
            assert (left or 0) >= acknowledged
            if acknowledged:
                assert last >= acknowledged
                assert job in (left, left - 1)
        assert items.size() % 2 == 0
        assert items.read(items.size() - 1, items.size()) in ([left], [(left or 0) - 1], [])
    assert rounds == KILLS
    assert lake.content(store) == lake.content(lake.map())
    assert lake.items(items) == lake.items(lake.list())
