"""Records and state that nobody needs any more are removed."""

from __future__ import annotations

import dataclasses
import os
from contextlib import suppress
from random import Random

import pytest

import dstream as ds
from collectors import counting
from dstream.delta import checkpoints, vacuum
from dstream.errors import EngineError, IllegalStateError
from dstream.jobs.unbounded import log as epoch_log
from dstream.jobs.unbounded import state
from dstream.jobs.unbounded.log import LogRecord
from dstream.operators.state.index import Shard, ShardIndex
from dstream.operators.state.index_format import changes_to_plain, index_to_plain
from dstream.spi.epochs import ShardChange
from dstream.storage.lake import collection
from reducers import to_icache, to_ilist, to_imap
from tests.jobs.unbounded.streams import Feed, eventually
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


@pytest.fixture
def often(monkeypatch):
    """Every fourth record is a checkpoint, and all records go at once that are too old."""
    monkeypatch.setattr(state, "_AT_ONCE", 1000)
    for module in (epoch_log, state, __import__("dstream.jobs.unbounded.epoch_runner", fromlist=["EpochRunner"])):
        monkeypatch.setattr(module, "EPOCHS_PER_CHECKPOINT", 4)


@pytest.fixture
def records():
    """Those of a storage in memory."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        yield ctx.running_storage().records


@pytest.mark.usefixtures("often")
def test_old_records_and_files_go(ctx):
    """Those behind the last checkpoint that is old enough; the job goes on, also after a restart."""
    seconds, feed = [0.0], Feed()
    config = ds.JobConfig(keep=10, clock=lambda: seconds[0])
    job = ctx.new_job(summing_plan(feed, lambda: Lagging(10**6), FrameSums()), config=config)
    feed.give(*range(1000, 9000, 10))
    for number in range(1, 22):
        seconds[0] = float(number * 5)
        feed.give(number)
        eventually(lambda number=number: job.epoch == number)
    storage = ctx.running_storage()
    log = epoch_log.EpochLog(ctx._jobs._records.all, job.id, "")
    eventually(lambda: log.numbers() == list(range(16, 22)))
    files = {file.name for file in storage.state_files(job.id).found()}
    named = set().union(*map(state.files_named_by, log.since(16)))
    job.restart()
    feed.end()
    job.join(10)

    assert named <= files
    assert len(files) < 20
    assert sorted(ctx.get_list("out"))[:6] == [(10, 20), (10, 25), (20, 70), (20, 75), (30, 20), (30, 21)]
    assert len(ctx.get_list("out")) == 806


def _filled(records, nows):
    """A log with a record at each reading of the clock; every fourth is a checkpoint."""
    log = epoch_log.EpochLog(records, "j", "a")
    log.claim(0, lambda: 0.0, lambda: LogRecord(0, "a", nows[0], index={}))
    made = [LogRecord(number, "a", now, number, index=_index(number)) for number, now in enumerate(nows)]
    for each in made[1:]:
        log.put(each)
    return log, made


def _index(number):
    return {} if number % 4 == 0 else None


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("now", "kept"), [(9.0, 0), (14.0, 0), (14.1, 4), (18.0, 4), (18.1, 8), (22.0, 8), (22.1, 12), (1e9, 12)]
)
def test_a_record_goes_when_the_next_checkpoint_is_older_than_that(records, now, kept):
    """A checkpoint that is exactly so old is kept with all behind it; the last one is kept however old it is."""
    log, made = _filled(records, [float(number) for number in range(13)])
    folding = state.LogCompaction(log, None, keep=10)
    removed = folding.after(dataclasses.replace(made[12], now=now))

    assert (removed, log.numbers()) == (kept, list(range(kept, 13)))
    assert [log.at(each).number for each in (kept, 12)] == [kept, 12]
    for gone in range(max(kept - 1, 0), kept):
        with pytest.raises(ValueError, match="keeps no such record"):
            log.at(gone)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("is_restarted", [True, False])
def test_what_a_fold_left_goes_with_the_next(records, monkeypatch, is_restarted):
    """The storage failed, or the driver died, when the floor was raised and half of the records was removed."""
    log, made = _filled(records, [float(number) for number in range(9)])
    folding, remove = state.LogCompaction(log, None, keep=1), epoch_log.EpochLog.remove

    def failing(log, number):
        if number == 2:
            raise EngineError("no storage")
        remove(log, number)

    with monkeypatch.context() as patched:
        patched.setattr(epoch_log.EpochLog, "remove", failing)
        with pytest.raises(EngineError):
            folding.after(dataclasses.replace(made[8], now=6.0))
    again = state.LogCompaction(log, None, keep=1) if is_restarted else folding
    for number in range(9, 17):
        made.append(LogRecord(number, "a", float(number), number, index=_index(number)))
        log.put(made[-1])
        again.after(made[-1])

    assert {name.removeprefix("job-logs/j/") for name in records.names("job-logs/j/")} == {
        *("12", "13", "14", "15", "16", "floor")
    }


@pytest.mark.usefixtures("often")
def test_a_failure_of_the_storage_ends_no_compaction(monkeypatch):
    """Whichever of its calls fails, when earlier drivers' checkpoints are searched or later: the next one goes on."""

    def kept(failing):
        records, calls = epoch_log.UnkeptRecords(), [0]
        log, made = _filled(records, [float(number) for number in range(40)])
        folding = state.LogCompaction(log, None, keep=5)

        def counted(call):
            def called(*args):
                calls[0] += 1
                if calls[0] == failing:
                    raise EngineError("no storage")
                return call(*args)

            return called

        for number in range(40, 61):
            made.append(LogRecord(number, "a", float(number), number, index=_index(number)))
            log.put(made[-1])
            with monkeypatch.context() as patched, suppress(EngineError):
                for name in ("read", "write", "names", "forget"):
                    patched.setattr(records, name, counted(getattr(records, name)))
                folding.after(made[-1])
        return records.names("job-logs/"), calls[0]

    whole, calls = kept(0)

    assert (len(whole), calls > 150) == (10, True)
    for failing in range(1, 100):
        assert kept(failing)[0] == whole, failing


@pytest.mark.usefixtures("often")
def test_a_fold_is_spread_over_the_epochs_behind_it(records, monkeypatch):
    """A hundred records at once would hold up the job; another driver's record ends it."""
    monkeypatch.setattr(state, "_AT_ONCE", 2)
    log, made = _filled(records, [float(number) for number in range(9)])
    folding, found = state.LogCompaction(log, None, keep=1), []
    for number in range(9, 13):
        record = made[8] if number == 9 else dataclasses.replace(made[8], number=number - 1, index=None)
        if number > 9:
            log.put(record)
        found.append(folding.after(record))

    assert found == [2, 2, 0, 0]
    assert log.numbers() == [4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.usefixtures("often")
def test_a_fold_reads_no_records_that_are_kept(records, monkeypatch):
    """A day of them may be millions: the checkpoints are read, once, and what is dropped."""
    log, made = _filled(records, [0.0] * 8 + [100.0] * 393)
    read = list[int]()
    monkeypatch.setattr(epoch_log.EpochLog, "read", lambda log, number: read.append(number) or READ(log, number))
    folding = state.LogCompaction(log, None, keep=50)

    assert (folding.after(made[400]), log.numbers()[0]) == (4, 4)
    assert [number for number in read if number % 4 and 4 < number < 400] == []


READ = epoch_log.EpochLog.read


@pytest.mark.parametrize("seed", range(20))
def test_files_that_a_record_needs_stay(records, monkeypatch, seed):
    """Of random jobs with restarts at earlier epochs and drivers that die: each record that is kept can go on."""
    random, name = Random(seed), "0" * 31
    for module in (epoch_log, state):
        monkeypatch.setattr(module, "EPOCHS_PER_CHECKPOINT", 4)
    monkeypatch.setattr(state, "_AT_ONCE", random.choice([1, 2, 50]))
    log, files, now = epoch_log.EpochLog(records, "j", "a"), _Files(), 0.0
    index = ShardIndex("s", "count", (), (Shard(),) * 3)
    log.claim(0, lambda: 0.0, lambda: LogRecord(0, "a", 0.0, index={"s": index_to_plain(index)}))
    record, of_records = log.last(), {0: index}
    keep = random.choice([3.0, 12.0])
    folding, runs = state.LogCompaction(log, files, keep), 1
    for _ in range(150):
        now += random.random()
        chance, number = random.random(), record.number + 1
        if chance < 0.06:  # A new driver, which may begin at an earlier epoch.
            record = record.claimed(number, "a", now)
            log.put(record)
            of_records[number], runs = index, runs + 1
            if chance < 0.04:
                earlier = log.read(random.choice([each for each in log.numbers() if each < number]))
                index = of_records[earlier.number]
                again = earlier.claimed(number + 1, "a", now)
                record = dataclasses.replace(again, index={"s": index_to_plain(index)}, published=record.published)
                log.put(record)
                of_records[number + 1] = index
            folding = state.LogCompaction(log, files, keep)
            continue
        file = f"s/{number:012d}-{name}{random.randrange(10)}"
        changes = [_random_change(random, shard, file, index.shards[shard]) for shard in random.sample(range(3), 2)]
        files.names.add(file)
        index = index.applied(changes)
        whole = {"s": index_to_plain(index)} if number % 4 == 0 else None
        plain = {"s": changes_to_plain(changes)}
        record = LogRecord(number, "a", now, record.published + 1, changes=plain, index=whole)
        log.put(record)
        of_records[number] = index
        folding.after(record)
        for each in log.numbers():
            assert of_records[each].files() <= files.names, f"the state of record {each} behind {number}"

    if keep == 3.0 and state._AT_ONCE > 1:
        assert len(files.names) < 60 + 10 * runs, "most of the files are gone"


class _Files:
    """Files of state without content."""

    def __init__(self):
        self.names = set()

    def remove(self, name):
        """Remove one."""
        self.names.discard(name)


def _random_change(random, shard, file, known):
    is_snapshot = not known.parts or random.random() < 0.2
    merges = 0 if is_snapshot else random.randrange(len(known.parts))
    return ShardChange(shard, is_snapshot, file, 0, 1, 1, merges)


@pytest.mark.usefixtures("often")
def test_files_stay_few(tmp_path, monkeypatch):
    """Of records, of state, and of the map that each epoch commits to: as many after 200 epochs as after 100."""
    monkeypatch.setattr(checkpoints, "_SOONEST", 10)
    monkeypatch.setattr(vacuum, "_SHORTEST", 0.0)
    monkeypatch.setattr(vacuum, "_PAUSE", 0.0)
    counts = []
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        feed, pipeline = Feed(), ds.Pipeline()
        read = pipeline.read_from(feed)
        read.grouping_key(lambda n: n % 5).rolling_aggregate(counting()).write_to(to_imap("counts"))
        job = ctx.new_job(pipeline, config=ds.JobConfig(keep=0.05, epoch_length=0.001))
        for number in range(1, 201):
            feed.give(*range(5))
            eventually(lambda number=number: job.epoch == number)
            counts.append(sum(len(names) for _, _, names in os.walk(tmp_path)))  # A folder may go meanwhile.
        feed.end()
        job.join(10)
        found = ctx.get_map("counts").copy()

    assert found == dict.fromkeys(range(5), 200)
    assert max(counts[100:]) < 1.5 * max(counts[50:100])
    assert max(counts) < 1000


def test_an_epoch_that_gives_nothing_looks_for_no_files(tmp_path, monkeypatch):
    """Most epochs of windows are so, and the target may have any number of files."""
    looked = []
    monkeypatch.setattr(collection.LakeCollection, "discard_staged", lambda store, prefix: looked.append(prefix))
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        cache, feed, pipeline = ctx.get_cache("cache", ttl=60.0), Feed(), ds.Pipeline()
        large = pipeline.read_from(feed).filter(lambda n: n > 10)
        large.write_to(to_imap("map", str, abs))
        large.write_to(to_icache("cache", str, abs))
        large.write_to(to_ilist("list"))
        job = ctx.new_job(pipeline)
        for number in (1, 2):
            feed.give(number)
            eventually(lambda number=number: job.epoch == number)
        feed.give(11)
        feed.end()
        job.join(10)
        found = (ctx.get_map("map").copy(), list(cache.keys()), ctx.get_list("list").copy())

    assert found == ({"11": 11}, ["11"], [11])
    assert looked == []


def test_old_files_that_cannot_be_removed_are_logged(tmp_path, monkeypatch, caplog):
    """The epoch is published, so the job goes on."""

    def refused(store, older_than):
        raise IllegalStateError("map 'counts' is damaged")

    monkeypatch.setattr(collection.LakeCollection, "cut_log", refused)
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        feed, pipeline = Feed(), ds.Pipeline()
        pipeline.read_from(feed).write_to(to_imap("counts", lambda n: n, lambda n: n))
        job = ctx.new_job(pipeline)
        feed.give(1, 2)
        feed.end()
        job.join(10)
        assert ctx.get_map("counts").copy() == {1: 1, 2: 2}
    assert "what is old was not removed: map 'counts' is damaged" in caplog.text
