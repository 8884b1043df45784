"""The state of a step from epoch to epoch, and at each place where a process can die (decision 45)."""

from __future__ import annotations

import pickle
import re

import pytest

from dstream.errors import IllegalStateError
from dstream.failures.attribution import given_to
from dstream.operators.state import backend, keys, stateful_steps
from dstream.operators.state.disk import StatesOnDisk
from dstream.operators.state.keyed_operators import StatefulMapping
from tests.state.counting import Counting, moment
from tests.state.epochs import JOB, Epochs


def test_state_of_an_epoch_is_there_in_the_next(epochs):
    """A key that comes again finds its count."""
    epochs.run(["a", "b"])
    epochs.run(["a"])

    assert epochs.counts() == {"a": 2, "b": 1}
    assert epochs.index.keys == 2


def test_state_is_there_for_a_process_that_has_seen_nothing(epochs):
    """It is made of the files."""
    epochs.run(["a", "b"])
    epochs.forget()
    epochs.run(["a"])
    epochs.forget()
    epochs.run(["a", "b"])

    assert epochs.counts() == {"a": 3, "b": 2}


def test_state_of_an_attempt_that_does_not_count_is_dropped(epochs):
    """Row 2 of the table: its file is named by nobody, and what the process kept of it is not used."""
    epochs.run(["a"])
    epochs.task(["a", "a", "a"])
    epochs.run(["a"])

    assert epochs.counts() == {"a": 2}


def test_state_of_two_attempts_is_that_of_the_one_that_counts(epochs):
    """Row 2: a task that ran twice, in one process, has two files; the first may be the one that counts."""
    first, second = epochs.task(["a"]), epochs.task(["a", "b"])
    epochs.commit(first)
    epochs.run(["a"])

    assert first[0].file != second[0].file
    assert epochs.counts() == {"a": 2}


def test_state_of_an_epoch_without_a_record_is_that_before(epochs):
    """Row 3: all tasks have written, and the driver dies before the record."""
    epochs.run(["a"])
    for target in range(4):
        epochs.task(["a", "b", "c"], target=target, targets=4)
    epochs.run(["c"], targets=3)

    assert epochs.counts() == {"a": 1, "c": 1}


def test_state_of_a_torn_file_without_a_name_is_not_missed(epochs):
    """Row 1: a task dies while it writes; the next attempt writes another file."""
    epochs.run(["a"])
    (change,) = epochs.task(["a"])
    whole = epochs.files.read(change.file, 0, change.length)
    epochs.files.remove(change.file)
    epochs.files.write(change.file, whole[:7])
    epochs.run(["a"])

    assert epochs.counts() == {"a": 2}


@pytest.mark.parametrize("seen", [1, 3, 20])
def test_state_of_a_process_that_missed_epochs_is_brought_up_to_date(epochs, seen):
    """It reads what came since, also where that was merged with what it knows, and never the snapshot."""
    epochs.index = type(epochs.index).new("counts", epochs.operator, 1)
    epochs.shards = 1
    epochs.run(range(9000))
    for number in range(80):
        epochs.move_to("second" if number >= seen else "first")
        epochs.run([number])
    epochs.files.remove(epochs.index.shards[0].parts[0].file)
    epochs.move_to("first")
    epochs.forget_files()

    counts = dict(epochs.state().open(0, epochs.operator).entries())
    assert (len(counts), counts[79], counts[80]) == (9000, 2, 1)


def test_state_of_a_process_that_missed_nothing_reads_nothing(epochs, monkeypatch):
    """Not even to merge what it has written."""
    monkeypatch.setattr(type(epochs.files), "read", None)
    epochs.run(range(9000))
    for number in range(80):
        epochs.run([number % 3])

    assert any(change.merges for record in epochs.records for change in record)


def test_state_of_an_index_that_went_back_is_loaded_again(epochs):
    """A job that starts at an earlier epoch does not see what its process has kept of later ones."""
    epochs.run(["a"])
    earlier = epochs.index
    epochs.run(["a"])
    epochs.index = earlier
    epochs.run(["b"])

    assert epochs.counts() == {"a": 1, "b": 1}


def test_state_of_an_empty_index_is_empty_whatever_a_process_has_kept(epochs):
    """A job that starts afresh under its old id finds nothing."""
    epochs.run(["a"])
    epochs.index = type(epochs.index).new("counts", epochs.operator, epochs.shards)
    epochs.run(["a"])

    assert epochs.counts() == {"a": 1}


def test_state_of_another_plan_gets_new_functions(epochs):
    """A shard holds the functions of the operator that made it, so that of another plan is loaded."""
    epochs.run(["a"])
    shard = epochs.records[0][0].shard
    held = epochs.state().open(shard, epochs.operator)
    for version, is_held in (("", True), ("other", False)):
        state = epochs.state()
        state.keep(shard, held)
        state.staged()

        assert (epochs.state(version).open(shard, epochs.operator) is held) == is_held


def test_state_that_did_not_change_writes_nothing(epochs):
    """A shard that was opened in vain costs no file, and stays known."""
    epochs.run(["a"])
    state = epochs.state()
    shard = epochs.records[0][0].shard
    held = state.open(shard, epochs.operator)
    state.keep(shard, held)

    assert state.staged() == ()
    assert epochs.state().open(shard, epochs.operator) is held


def test_state_of_a_shard_is_for_one_task_alone(epochs):
    """Who opens it second gets another one, made of the files."""
    epochs.run(["a"])
    shard = epochs.records[0][0].shard
    first, second = (epochs.state().open(shard, epochs.operator) for _ in range(2))

    assert first is not second
    assert (dict(first.entries()), dict(second.entries())) == ({"a": 1}, {"a": 1})


def test_state_waits_for_time(epochs):
    """A shard to which nothing comes is opened when the watermark reaches its deadline, and not before."""
    epochs.run([("a", 50), ("b", 70)])

    assert epochs.index.deadline == 50
    assert epochs.state().touched(0, 1, 49, 0.0) == []
    epochs.run([], new=50)
    assert epochs.outputs == [("a", 1)]
    assert (epochs.index.deadline, epochs.counts()) == (70, {"b": 1})


def test_state_tells_the_deadlines_of_a_task(epochs):
    """They are the least of what was staged."""
    state = epochs.state()
    for shard, until in ((0, 50), (1, 40)):
        opened = state.open(shard, epochs.operator)
        opened.apply([(0, {"a": (1, until)})], moment())
        state.keep(shard, opened)
    state.staged()

    assert state.deadlines() == (40, None)


def test_state_of_new_deadlines_alone_needs_no_file(epochs):
    """The index learns them even if nothing else changed, or the shard would be opened in each epoch."""
    epochs.run([("a", 50)])
    shard = epochs.records[0][0].shard
    state = epochs.state()
    opened = state.open(shard, epochs.operator)
    opened.until["a"] = 90
    state.keep(shard, opened)
    (change,) = state.staged()
    epochs.commit([change])

    assert (change.length, change.file, epochs.index.deadline) == (0, "", 90)
    assert epochs.index.shards[shard].token == epochs.records[0][0].file


def test_state_travels_to_tasks(lake):
    """A task in another process opens what this one has written."""
    epochs = Epochs(lake, Counting())
    epochs.run(["a"])
    epochs.move_to("second")
    state = pickle.loads(pickle.dumps(epochs.state()))

    assert dict(state.open(epochs.records[0][0].shard, epochs.operator).entries()) == {"a": 1}


def test_state_of_idle_keys_costs_nothing(epochs):
    """What an epoch writes follows the keys that it touches, not those that there are."""
    written = []
    for idle in (0, 50_000):
        epochs.index = type(epochs.index).new("counts", epochs.operator, 8)
        epochs.records.clear()
        epochs.run(range(10, 10 + idle))
        for _ in range(100):
            epochs.run(range(10))
        written.append([sum(change.length for change in record) for record in epochs.records])

    (_, *few), (first, *many) = written
    assert first > 50_000
    assert sum(many) < 2 * sum(few)


def test_state_writes_one_snapshot_at_a_time(epochs):
    """If more shards outweigh theirs in one epoch, the others wait for later ones."""
    epochs.run(range(4000))
    for _ in range(40):
        epochs.run(range(500))

    snapshots = [sum(change.is_snapshot for change in record) for record in epochs.records]
    assert (snapshots[0], max(snapshots[1:]), sum(snapshots[1:]) >= 8) == (8, 1, True)


def test_state_that_cannot_be_pickled_names_the_step(epochs):
    """The item is in the delta, and the user sees whose state it is; the engine names the step."""
    state = epochs.state()
    opened = state.open(0, epochs.operator)
    opened.apply([(0, {(value for value in "ab"): (1, None)})], moment())

    with pytest.raises(TypeError, match="cannot be stored") as raised:
        state.keep(0, opened)
    assert re.match("where the state of the key <generator .*> was pickled, at the end of", given_to(raised.value))


def test_state_is_not_given_to_an_operator_of_another_kind(epochs):
    """A window of another size cannot go on with what the first one left."""
    epochs.run(["a"])

    with pytest.raises(IllegalStateError, match=r"that of a counting, and the step is now a counting of 10"):
        epochs.index.check_fits(Counting(10))


def test_relieving_moves_all_shards_of_the_process_to_disk(epochs, monkeypatch):
    """Those of this task and of earlier epochs, each once; the next epochs find what they held."""
    monkeypatch.setattr(keys, "_MANY", 1)
    mapping = StatefulMapping(str, list, lambda state, key, item: state.append(item), "map")
    epochs = Epochs(epochs.files, mapping, shards=2)
    epochs.run([(0, number) for number in range(20)])
    kept = [kept_shard.state for kept_shard in vars(backend.kept_shards)["_jobs"][JOB].shards.values()]

    assert (epochs.state().relieve(), epochs.state().relieve()) == (True, False)
    assert [type(state._states) for state in kept] == [StatesOnDisk, StatesOnDisk]
    epochs.run([(0, 3)])
    assert epochs.counts() == {str(number): [number, number] if number == 3 else [number] for number in range(20)}


def test_state_moves_once_in_a_process_that_has_much_else(monkeypatch):
    """And again when the process has grown, or was small meanwhile; not for each look."""
    sizes, pressure = [], stateful_steps._MemoryPressure()
    monkeypatch.setattr(stateful_steps, "resident_bytes", lambda: sizes[-1])

    def moves(megabytes, left):
        sizes.append(megabytes * 2**20)
        is_high = pressure.is_high(512 * 2**20)
        if is_high:
            sizes.append(left * 2**20)
            pressure.relieved(512 * 2**20)
        return is_high

    assert [moves(500, 500), moves(700, 690), moves(695, 695), moves(720, 720)] == [False, True, False, False]
    assert [moves(723, 600), moves(630, 630), moves(633, 400)] == [True, False, True]
    assert [moves(513, 513), moves(500, 500), moves(513, 500), moves(513, 500)] == [True, False, True, True]
