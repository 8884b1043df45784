"""A driver of windows into six sinks, to be killed: `python -m tests.jobs.unbounded.killed_windows TERMS`.

It says "running" when its run has published an epoch. It ends with 0 when the job has completed, and with `TAKEN_OVER`
if another driver has the job. While another one has it, it waits.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import itertools
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dstream as ds
from collectors import counting
from dstream.errors import JobExistsError, JobTakenOverError
from dstream.jobs import Job
from dstream.jobs.heartbeats import Rhythm
from dstream.jobs.registry import Jobs
from dstream.jobs.unbounded import epoch_runner
from dstream.jobs.unbounded.log import EpochLog
from dstream.jobs.unbounded.placement import EngineChoice
from dstream.testing.engines import SETTINGS
from dstream.windows import tumbling
from reducers import to_files, to_ilist, to_imap, to_kafka
from tests.jobs.unbounded.clocked_events import FRAME, LAG, Clocked
from tests.jobs.unbounded.counting_processors import TotalsOfKeys
from tests.jobs.unbounded.moving_epochs import ElsewhereEngine, move_at_random, with_two_engines

__all__ = ["NAME", "POINTS", "TAKEN_OVER", "Terms", "connected", "pipeline_of"]

NAME = "windows"
TAKEN_OVER = 3
POINTS = ("claimed", "staged", "committed", "between", "published", "removing", "moved")
"""The moments of an epoch at which a driver is killed, in order; the last two come only now and then."""
_RHYTHM = Rhythm(look=0.1, beat=0.3, lost_after=2.0, patience=1.0)
_KEEP = 3.0
_ITEMS = {"local": 60, "moving": 60, "spark": 1000}
"""Of each partition in an epoch, at most: so few that a driver that catches up has many epochs in which to die."""


@dataclass(frozen=True)
class Terms:
    """What a driver is to do.

    Attributes:
        folder: has the storage and the files.
        count: events of each partition.
        keys: how many there are.
        rate: events of a partition in a second.
        born: when the source began.
        engine: `"local"` or `"spark"`; or `"moving"`: epochs run in the driver and on an engine in the place of Spark.
        topic: the address of a broker and a topic, or nothing.
        point: at which the driver sends itself a signal, or nothing.
        passes: how often it gets there before that.
        signal: the number of that signal.
    """

    folder: str
    count: int
    keys: int
    rate: float
    born: float
    engine: str = "local"
    topic: tuple[str, str] | None = None
    point: str = ""
    passes: int = 0
    signal: int = signal.SIGKILL

    def to_json(self) -> str:
        """Return all of it as one argument."""
        return json.dumps(dataclasses.asdict(self))


def connected(terms: Terms) -> ds.Context:
    """Open a context whose drivers look around often."""
    place = f"{terms.folder}/storage"
    if terms.engine == "local":
        context = ds.connect(engine="local", storage=place)
    elif terms.engine == "moving":
        move_at_random(terms.passes)
        context = with_two_engines(ds.connect(engine="local", storage=place), ElsewhereEngine)
    else:
        context = ds.connect("local[2,4]", config=SETTINGS, storage=place, progress=False)
    storage = context.running_storage()
    context._jobs = Jobs(context, storage.records, storage.load_pickle, _RHYTHM)
    return context


def pipeline_of(terms: Terms) -> ds.Pipeline:
    """Return counts in windows into two maps and a topic, events into files, and rolling counts into two lists.

    Those of one list are made by processors.
    """
    pipeline = ds.Pipeline()
    read = pipeline.read_from(Clocked(terms.count, terms.keys, terms.rate, terms.born))
    events = read.add_timestamps(lambda each: each.timestamp, LAG, idle_timeout=3600)
    by_key = events.grouping_key(lambda each: each.key)
    counts = by_key.window(tumbling(FRAME)).aggregate(counting())
    counts.write_to(to_imap("windows", _frame, lambda each: each.result))
    counts.write_to(
        to_imap("totals", lambda each: each.key, lambda each: each.result, lambda a, b: a + b, on_existing="merge")
    )
    events.map(lambda each: each.place).write_to(to_files(f"{terms.folder}/files", format="json"))
    # A few epochs in a file: the one that reaches the size publishes those before it, too.
    events.map(lambda each: each.place).write_to(to_files(f"{terms.folder}/joined", format="json", roll_at=(4000, 2)))
    by_key.rolling_aggregate(counting()).map(tuple).write_to(to_ilist("rolling"))
    by_key.custom_transform("processors", TotalsOfKeys).write_to(to_ilist("processed"))
    if terms.topic is not None:
        address, topic = terms.topic
        settings = {"bootstrap.servers": address}
        counts.write_to(to_kafka(topic, settings, key=_frame, value=lambda each: str(each.result)))
    return pipeline


def _frame(result: Any) -> str:
    return f"{result.key}@{result.start}"


def _submitted(ctx: ds.Context, terms: Terms) -> Job:
    """Submit the job as soon as nobody else drives it; one that has completed stays as it is."""
    config = ds.JobConfig(epoch_length=0.02, max_items=_ITEMS[terms.engine], keep=_KEEP, auto_restart=(1000, 0.1))
    while True:
        found = ctx.job(NAME)
        if found is not None and found.status is ds.JobStatus.COMPLETED:
            return found
        try:
            return ctx.new_job(pipeline_of(terms), name=NAME, config=config)
        except JobExistsError:
            time.sleep(0.05)


def main(terms: Terms) -> int:
    """Drive the job to its end."""
    faulthandler.register(signal.SIGUSR1)
    _tell_points(terms)
    with connected(terms) as ctx:
        job = _submitted(ctx, terms)
        try:
            before = job.epoch
            while job.epoch <= before and not job.status.has_ended:
                time.sleep(0.01)
            print("running", flush=True)
            job.join()
        except JobTakenOverError:
            return TAKEN_OVER
    return 0


def _tell_points(terms: Terms) -> None:
    """Send a signal to the driver at a point of the loop."""
    passes = itertools.count()

    def at(point: str) -> None:
        if point == terms.point and next(passes) == terms.passes:
            signal.raise_signal(terms.signal)  # To this thread, which stands still at once.

    _wrap(EpochLog, "claim", lambda: None, lambda: at("claimed"))
    _wrap(EngineChoice, "_has_moved", lambda: at("moved"), lambda: None)
    _wrap(EpochLog, "put", lambda: at("staged"), lambda: at("committed"))
    _wrap(epoch_runner, "naming", lambda: at("between"), lambda: None)
    _wrap(epoch_runner.EpochRunner, "publish", lambda: None, lambda: at("published"))
    _wrap(EpochLog, "remove", lambda: at("removing"), lambda: None)


def _wrap(owner: Any, name: str, before: Callable[[], object], after: Callable[[], object]) -> None:
    inner = getattr(owner, name)

    def told(*given: Any, **named: Any) -> Any:
        before()
        result = inner(*given, **named)
        after()
        return result

    setattr(owner, name, told)


def _terms(text: str) -> Terms:
    given = json.loads(text)
    return Terms(**{**given, "topic": given["topic"] and tuple(given["topic"])})


if __name__ == "__main__":
    sys.exit(main(_terms(sys.argv[1])))
