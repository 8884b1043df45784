"""Which files of state may go."""

from __future__ import annotations

from dstream.operators.state.index_format import files_of, orphans, removable, remove_all


def test_folding_removes_what_only_dropped_records_name(epochs):
    """Not what the index is made of, nor what a record that is kept names."""
    for _ in range(4):
        epochs.run(["a"] * 50)
    dropped, kept = epochs.records[:3], epochs.records[3:]
    gone = removable(map(files_of, dropped), [*map(files_of, kept), epochs.index.files()])
    for name in gone:
        epochs.files.remove(name)
    epochs.forget()

    assert gone == sorted(epochs.named() - epochs.index.files())
    assert epochs.counts() == {"a": 200}


def test_folding_keeps_what_a_checkpoint_names(epochs):
    """A job can start there again."""
    epochs.run(["a"])
    checkpoint = epochs.index
    for _ in range(30):
        epochs.run(["a"])
    kept = [checkpoint.files(), epochs.index.files()]
    for name in removable(map(files_of, epochs.records), kept):
        epochs.files.remove(name)
    epochs.index = checkpoint

    assert epochs.counts() == {"a": 1}


def test_folding_that_died_goes_on(epochs):
    """Some files are gone already, and the records are there: the same is found, and done."""
    epochs.run(["a"])
    for _ in range(2):
        epochs.index = type(epochs.index).new("counts", epochs.operator, 8)
        gone = removable(map(files_of, epochs.records), [epochs.index.files()])
        for name in gone:
            epochs.files.remove(name)

    assert list(epochs.files.found()) == []


def test_folding_finds_old_files_that_nobody_names(epochs):
    """Those of attempts that did not count; what is new may be named soon."""
    (lost,) = epochs.task(["a"])
    epochs.run(["a"])
    (file,) = (file for file in epochs.files.found() if file.name == lost.file)

    assert orphans(epochs.files, [epochs.index], [], file.written_at + 1000) == [lost.file]
    assert orphans(epochs.files, [epochs.index], [lost.file], file.written_at + 1000) == []
    assert orphans(epochs.files, [epochs.index], [], file.written_at) == []


def test_folding_removes_all_of_a_job_that_has_ended(epochs):
    """Nothing is left."""
    epochs.run(["a", "b"])
    remove_all(epochs.files)

    assert list(epochs.files.found()) == []
