"""An executor is lost with its part of a shuffle: that part may come out in another way the second time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers.java_of_programs import JavaOfPrograms
from tests.system.conftest import Script, environment

HELPERS = """
    import random
    import time
    from pathlib import Path

    import psutil
    from pyspark import TaskContext

    class Parts:
        \"\"\"Gives items random keys; the third task behind the shuffle kills the executor of the first.\"\"\"

        def __init__(self, folder):
            self.folder = Path(folder)

        def keyed(self, n):
            Path(self.folder, f"{n}-{random.randrange(2**60)}").touch()
            return n, random.randrange(1000)

        def taken(self, state, key, item):
            mark = self.folder / f"task-{TaskContext.get().partitionId()}"
            if not mark.exists():
                mark.write_text(str(_executor().pid))
                executors = {int(each.read_text()) for each in self.folder.glob("task-*")} - {_executor().pid}
                killed = self.folder / "killed"
                if executors and len(list(self.folder.glob("task-*"))) == 3 and not killed.exists():
                    killed.touch()
                    for each in executors:
                        psutil.Process(each).kill()
                    time.sleep(1)
            return item[0]

    def _executor():
        process = psutil.Process()
        while "java" not in process.name():
            process = process.parent()
        return process
"""

JOB = """
    import json, os, pathlib, sys
    import dstream as ds
    from helpers_of_user import Parts
    from reducers import to_ilist
    from tests.jobs.unbounded.streams import Feed

    folder = sys.argv[1]
    parts, pipeline = Parts(folder), ds.Pipeline()
    feed = Feed({str(p): list(range(50 * p, 50 * p + 50)) for p in range(4)})
    feed.end()
    keyed = pipeline.read_from(feed).map(parts.keyed).grouping_key(lambda pair: pair[1])
    keyed.map_stateful(list, parts.taken).write_to(to_ilist("out"))
    # A fetch that fails is not to wait: the executor does not come back.
    fast_start = os.environ.get("SPARK_SUBMIT_OPTS", "")
    config = {"spark.shuffle.io.maxRetries": "0", "spark.executor.extraJavaOptions": fast_start}
    config |= json.loads(sys.argv[2])
    with ds.connect("local-cluster[2,1,1024]", storage=folder + "/storage", config=config, progress=False) as ctx:
        ctx.new_job(pipeline, config=ds.JobConfig(auto_restart=(3, 0.1))).join(220)
        out = ctx.get_list("out").copy()
    read = sum(not path.name.startswith("task") and "-" in path.name for path in pathlib.Path(folder).iterdir())
    print(json.dumps({"out": sorted(out), "read": read, "killed": pathlib.Path(folder, "killed").exists()}))
"""


def ran(script: Script, java: JavaOfPrograms, folder: Any, **config: str) -> Any:
    """Return what a job on two executors wrote, one of which was killed between two tasks behind a shuffle."""
    env = environment(**java())
    ended = script(JOB, str(folder), json.dumps(config), env=env, beside={"helpers_of_user.py": HELPERS})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_a_part_that_is_computed_again_is_never_seen_twice(script: Script, java: JavaOfPrograms, tmp_path: Any) -> None:
    """Tasks had read its first result already; it came out in another way, so the epoch ran again as a whole."""
    found = ran(script, java, tmp_path)
    if not found["killed"]:
        pytest.skip("one executor had all tasks")

    assert found["read"] > 200
    assert found["out"] == list(range(200))
