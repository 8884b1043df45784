"""A standalone cluster of two workers: tasks fail after writing and run twice, and what is committed is there once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.servers.java_of_programs import JavaOfPrograms
from tests.system.conftest import Script, environment

# The writer of the job is wrapped, so that attempts fail and linger at chosen moments.
COLLIDING = """
    import dataclasses, json, os, pathlib, sys, time
    import dstream as ds
    from dstream.stream.runtime import write
    from reducers import to_ilist, to_imap

    master, storage, marks = sys.argv[1:4]

    class Colliding:
        def __init__(self, writer, buckets=0):
            self.writer, self.buckets = writer, buckets

        def bucket_of(self, key):
            return self.writer.bucket_of(key)

        def write(self, items):
            yield from self.collide(list(self.writer.write(items)))

        def write_bucket(self, bucket, entries):
            yield from self.collide(list(self.writer.write_bucket(bucket, entries)))

        def collide(self, receipts):
            from pyspark import TaskContext
            task = TaskContext.get()
            name = f"{self.buckets}-{task.partitionId()}"
            mark = pathlib.Path(marks, f"{name}-{task.attemptNumber()}-{os.getpid()}")
            if mark.exists():
                return receipts
            mark.write_text("wrote")
            if task.partitionId() < 2 and task.attemptNumber() > 0:  # else the first would be stopped before it wrote
                while not any(pathlib.Path(marks).glob(f"{name}-0-*")):
                    time.sleep(0.05)
            if task.partitionId() == 0 and task.attemptNumber() == 0:
                raise OSError("this attempt fails after it has written")
            if task.partitionId() == 1 and task.attemptNumber() == 0:
                time.sleep(30)
            return receipts

    class CollidingEngine:
        def __init__(self, engine, buckets):
            self.engine, self.buckets = engine, buckets

        def submit(self, end):
            return self.engine.submit(dataclasses.replace(end, writer=Colliding(end.writer, self.buckets)))

    speculation = {
        "spark.speculation": "true", "spark.speculation.interval": "200ms", "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1", "spark.speculation.minTaskRuntime": "500ms",
        "spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.ui.enabled": "false",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    }
    with ds.connect(master, config=speculation, storage=storage) as ctx:
        numbers = ctx.stream(range(10_000), 4)
        for reducer, buckets in ((to_imap("squares", lambda n: n, lambda n: n * n), 16), (to_ilist("numbers"), 0)):
            write(ctx, numbers._node, reducer, lambda: CollidingEngine(ctx.running_engine(), buckets))
        for file in pathlib.Path(storage).rglob("*.parquet"):  # a writer that has yet to commit has a day for it
            os.utime(file, (time.time() - 2 * 86_400,) * 2)
        print(json.dumps({
            "squares": dict(ctx.get_map("squares")) == {n: n * n for n in range(10_000)},
            "numbers": list(ctx.get_list("numbers")) == list(range(10_000)),
            "attempts": sorted(path.name.rpartition("-")[0] for path in pathlib.Path(marks).iterdir()),
            "vacuumed": [ctx.get_map("squares").vacuum(0), ctx.get_list("numbers").vacuum(0)],
            "after": [len(ctx.get_map("squares")), len(ctx.get_list("numbers"))],
        }))
"""


@pytest.fixture(scope="module")
def master(java: JavaOfPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a master and two workers, each with an address of its own: a copy of a task runs on another host."""
    jvm, folder = java.gateway.jvm, tmp_path_factory.mktemp("cluster")
    deploy, none, conf = jvm.org.apache.spark.deploy, jvm.scala.Option.empty(), jvm.SparkConf(False)
    conf.set("spark.master.rest.enabled", "false")
    started = [deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)._1()]
    urls = java.gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = f"spark://127.0.0.1:{started[0].address().port()}"
    try:
        for host in ("127.0.0.2", "127.0.0.3"):
            place = (host, 0, 0, 1, 700, urls, str(folder), none, conf, none)
            started.append(deploy.worker.Worker.startRpcEnvAndEndpoint(*place))
        yield urls[0]
    finally:
        for each in reversed(started):
            each.shutdown()
            each.awaitTermination()


@pytest.fixture(scope="module")
def collided(
    script: Script, master: str, java: JavaOfPrograms, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, object]:
    """Run the two jobs, and return what came of them."""
    marks, storage = tmp_path_factory.mktemp("marks"), tmp_path_factory.mktemp("storage")
    done = script(COLLIDING, master, str(storage), str(marks), env=environment(**java()))
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_failed_and_a_speculative_task_leave_one_copy(collided: dict[str, object]) -> None:
    """The map has every entry and the list every item once, in order."""
    assert collided["squares"] is True
    assert collided["numbers"] is True


def test_the_tasks_did_collide(collided: dict[str, object]) -> None:
    """The first task of each job wrote twice, since it failed; the second, since it was slow."""
    attempts = collided["attempts"]

    assert isinstance(attempts, list)
    for buckets in (0, 16):
        assert {f"{buckets}-0-0", f"{buckets}-0-1", f"{buckets}-1-0", f"{buckets}-1-1"} <= set(attempts)


def test_vacuum_removes_what_lost_attempts_wrote(collided: dict[str, object]) -> None:
    """Files of the losing attempts go, and nothing that counts."""
    vacuumed = collided["vacuumed"]

    assert isinstance(vacuumed, list)
    assert all(count > 0 for count in vacuumed)
    assert collided["after"] == [10_000, 10_000]
