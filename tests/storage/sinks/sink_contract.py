"""What every sink must hold: a class of tests to inherit from, with a fixture `case` that says which sink it is."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

import dstream as ds
from dstream.base.pickling import dumps
from dstream.engine.local import LocalEngine
from dstream.plan import Read, rewrite
from dstream.spi import Sink, Target, WriteJob
from dstream.stream.runtime import writing
from sources import Items

__all__ = ["LOCAL_CHANGES", "Died", "SinkCase", "SinkContract", "dying", "let_die"]

LOCAL_CHANGES = [(os, name) for name in ("rename", "replace", "unlink")]
"""The functions that change the file system of this machine."""


class Died(BaseException):
    """Stands for the end of a process: what the code would do about it does not happen."""


def let_die(patch: pytest.MonkeyPatch, stops_at: int, changes: Iterable[tuple[Any, str]]) -> None:
    """End a process before its n-th call of a function that changes a file system, if it has as many."""
    steps = itertools.count()

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any) -> Any:
            if next(steps) >= stops_at:
                raise Died
            return real(*args)

        return change

    for owner, name in changes:
        patch.setattr(owner, name, counted(getattr(owner, name)))


def dying(
    monkeypatch: pytest.MonkeyPatch, stops_at: int, changes: Iterable[tuple[Any, str]], commit: Callable[[], None]
) -> None:
    """End a commit before its n-th change, if it has as many."""
    with monkeypatch.context() as patch, contextlib.suppress(Died):
        let_die(patch, stops_at, changes)
        commit()


@dataclass(frozen=True)
class SinkCase:
    """A sink, and how its target is looked at.

    Attributes:
        sink: without a job.
        connect: gives a context, as another process would make it.
        first, second: items of two epochs.
        content: gives what anybody sees in the target.
        left: gives all that is there, also what nobody sees.
    """

    sink: Sink[Any, Any]
    connect: Callable[[], ds.Context]
    first: list[Any]
    second: list[Any]
    content: Callable[[], list[Any]]
    left: Callable[[], set[str]]

    def target(self) -> Target[Any]:
        """Open the target as another process does."""
        return self._traveled().open(self.connect())

    def written(self, job: WriteJob[Any], items: Iterable[Any]) -> list[Any]:
        """Run the tasks; writer and receipts travel."""
        end = writing(Read(Items(items)), self._traveled(), pickle.loads(dumps(job.writer)))
        return list(pickle.loads(pickle.dumps(LocalEngine(2**20).submit(rewrite(end)).result())))

    def commit(self, job: str, epoch: int, items: list[Any]) -> list[Any]:
        """Write and commit an epoch; return its receipts."""
        begun = self.target().begin(job, epoch)
        receipts = self.written(begun, items)
        begun.commit(receipts)
        return receipts

    def _traveled(self) -> Sink[Any, Any]:
        sink: Sink[Any, Any] = pickle.loads(dumps(self.sink))
        return sink


class SinkContract:
    """The tests. An epoch of `case.first` and then one of `case.second` must leave different contents."""

    def test_it_says_what_it_is(self, case):
        """A sink is what `collect` takes, and has a label for messages."""
        assert isinstance(case.sink, Sink)
        assert case.sink.label.endswith(")")

    def test_nothing_is_seen_before_the_commit(self, case):
        """What tasks write is nowhere; committed, it is there, also for who opens the target then."""
        job = case.target().begin("job")
        receipts = case.written(job, case.first)
        assert (case.content(), job.is_done) == ([], False)
        job.commit(receipts)

        assert case.content()
        assert [job.is_done, case.target().begin("job").is_done] == [True, True]

    def test_receipts_are_plain_data(self, case):
        """What is kept of them on disk can be read without loading a class."""
        receipts = case.written(case.target().begin("job"), case.first)

        assert receipts
        assert ast.literal_eval(repr(receipts)) == receipts

    def test_a_commit_that_is_repeated_changes_nothing(self, case):
        """By the same driver, or by one that finds the receipts later."""
        job = case.target().begin("job")
        receipts = case.written(job, case.first)
        job.commit(receipts)
        before = (case.content(), case.left())
        job.commit(receipts)
        case.target().begin("job").commit(receipts)

        assert (case.content(), case.left()) == before

    def test_another_process_commits_from_the_receipts(self, case):
        """Whoever began it need not be there; if it comes back, its commit and its abort do nothing."""
        gone = case.target().begin("job")
        receipts = ast.literal_eval(repr(case.written(gone, case.first)))
        case.target().begin("job").commit(receipts)
        content = case.content()
        assert content
        gone.commit(receipts)
        gone.abort()

        assert case.content() == content

    def test_the_first_of_two_runs_counts(self, case):
        """Two drivers that run one epoch at the same time: one of them commits."""
        jobs = [case.target().begin("job") for _ in range(2)]
        receipts = [case.written(job, items) for job, items in zip(jobs, [case.first, case.second], strict=True)]
        jobs[0].commit(receipts[0])
        content = case.content()
        jobs[1].commit(receipts[1])

        assert case.content() == content

    def test_epochs_follow_one_another(self, case):
        """One that was committed is done, and so are those before; the next one is not."""
        case.commit("job", 1, case.first)
        content = case.content()
        assert not case.target().begin("job", 2).is_done
        case.commit("job", 2, case.second)

        assert case.content() != content
        assert [case.target().begin("job", epoch).is_done for epoch in (1, 2, 3)] == [True, True, False]
        assert not case.target().begin("other").is_done

    def test_an_epoch_that_comes_too_late_changes_nothing(self, case):
        """A driver that was cut off commits receipts of an epoch behind the last one."""
        late = case.target().begin("job", 1)
        receipts = case.written(late, case.first)
        case.commit("job", 2, case.second)
        content = case.content()
        late.commit(receipts)

        assert case.content() == content

    def test_an_abort_leaves_nothing(self, case):
        """As often as it is asked for; then the epoch can be run again."""
        job = case.target().begin("job")
        before = case.left()
        case.written(job, case.first)
        job.abort()
        job.abort()

        assert (case.content(), case.left()) == ([], before)
        case.commit("job", 1, case.first)
        assert case.content()

    def test_an_abort_after_the_commit_takes_nothing_back(self, case):
        """What is committed stays."""
        job = case.target().begin("job")
        job.commit(case.written(job, case.first))
        content = case.content()
        job.abort()

        assert case.content() == content != []

    def test_a_task_that_fails_leaves_nothing_once_it_is_aborted(self, case):
        """The exception passes through; nothing is seen of the items before it."""

        def failing():
            yield from case.first
            raise ZeroDivisionError

        job = case.target().begin("job")
        before = case.left()
        with pytest.raises(ZeroDivisionError):
            case.written(job, failing())
        job.abort()

        assert (case.content(), case.left(), job.is_done) == ([], before, False)

    def test_an_attempt_that_lost_never_shows(self, case):
        """A task may run twice; only what the receipts of one attempt name is committed."""
        job = case.target().begin("job")
        case.written(job, case.second)
        job.commit(case.written(job, case.first))
        other = case.content()

        assert [repr(item) for item in case.second if repr(item) in repr(other)] == []

    def test_an_epoch_without_items_is_done(self, case):
        """No items are a result too."""
        case.commit("job", 1, [])

        assert case.content() == []
        assert case.target().begin("job", 1).is_done
