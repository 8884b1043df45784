"""When the line is drawn and when it goes: with a clock turned by hand, and no thread."""

from __future__ import annotations

import threading

import pytest

from dstream.engine.calls import Call, Progress
from dstream.engine.display import Board, ProgressFacts, _start_thread


class Drawn:
    """A display that keeps what it was told."""

    def __init__(self):
        self.lines = []

    def width(self):
        return None

    def draw(self, line, now):
        self.lines.append(line)

    def erase(self):
        if self.lines and self.lines[-1] is not None:
            self.lines.append(None)


class Closed(Drawn):
    def draw(self, line, now):
        raise OSError("gone")

    erase = width = draw


class World:
    """A board without a thread, on a clock that stands still."""

    def __init__(self):
        self.now, self.started = 100.0, 0
        self.display = Drawn()
        self.board = Board(lambda: self.now, self._start)

    def _start(self, board):
        self.started += 1

    def begin(self, facts=lambda: ProgressFacts("count()", 5), asked=True):
        return Progress(asked, self.board, lambda wanted: self.display if wanted else None).begin(facts)

    def tick(self, seconds=0.3):
        self.now += seconds
        return self.board.tick()


@pytest.fixture
def world():
    """A board, a display and a clock."""
    return World()


def test_the_line_appears_after_a_second_and_goes_with_the_job(world):
    """Short jobs show nothing; the end takes the line away."""
    with world.begin():
        assert world.tick(0.9)
        assert world.display.lines == []
        world.tick(0.2)
        world.tick(1)

    assert world.display.lines == ["count()  5 items  0:01", "count()  5 items  0:02", None]
    assert not world.tick()


def test_the_line_goes_when_the_job_fails(world):
    """Also for an interrupt."""

    def interrupted():
        world.tick(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), world.begin():
        interrupted()

    assert world.display.lines[-1] is None
    assert not world.tick()


def test_the_line_is_away_while_the_caller_has_an_item(world):
    """What the loop's body prints meets no line; an iterator that is given up leaves nothing behind."""
    items = world.begin().lazily(iter([world.tick, world.tick, world.tick]))
    with world.begin():
        world.tick(2)
    next(items)
    assert world.display.lines[-1] is None
    world.tick(2)
    assert world.display.lines[-1] is None
    items.close()

    assert not world.tick()


def test_an_iterator_shows_how_far_it_is_while_it_is_waited_for(world):
    """The line comes while the next item is computed."""

    def slow():
        yield 1
        world.tick(2)
        yield 2

    items = world.begin().lazily(slow())

    assert (next(items), next(items)) == (1, 2)
    assert world.display.lines == ["count()  5 items  0:02", None]


def test_a_line_that_comes_late_goes_at_once(world):
    """The caller has the item already when the line is drawn."""
    slow = world.begin()
    slow.display.draw = lambda line, now: (world.display.lines.append(line), world.board._waiting.remove(slow))
    world.board.enter(slow)
    world.tick(2)

    assert world.display.lines[-1] is None


def test_one_line_serves_several_jobs(world):
    """The first one is shown, the others are counted; nested waiting of one job counts once."""
    with world.begin() as _, world.begin(lambda: ProgressFacts("second()")):
        world.tick(2)
    first = world.begin()
    with first, first:
        world.tick(2)

    assert [line for line in world.display.lines if line] == [
        "count()  5 items  0:02  and 1 more job",
        "count()  5 items  0:02",
    ]


@pytest.mark.parametrize("error", [RuntimeError, OSError, TypeError])
def test_facts_that_fail_harm_nobody(world, error):
    """Spark may be gone when it is asked."""

    def facts():
        raise error

    with world.begin(facts):
        assert world.tick(2)

    assert world.display.lines == []


def test_a_display_that_fails_harms_nobody(world):
    """A closed stderr is no reason for a job to fail."""
    world.display = Closed()
    with world.begin():
        assert world.tick(2)

    assert not world.tick()


def test_facts_are_asked_for_only_when_they_are_shown(world):
    """A short job costs no question."""
    asked = []
    with world.begin(lambda: asked.append(1)):
        world.tick(0.5)

    assert asked == []


def test_a_job_that_ends_while_facts_are_asked_for_is_not_drawn(world):
    """Nobody would take the line away."""

    def facts():
        operation.__exit__()
        return ProgressFacts("count()")

    operation = world.begin(facts)
    operation.__enter__()
    world.tick(2)

    assert world.display.lines == []


def test_one_thread_watches_and_ends_by_itself(world):
    """It serves all jobs that wait, and a later job starts another."""
    with world.begin(), world.begin():
        assert world.started == 1
    assert not world.tick()
    with world.begin():
        assert world.started == 2


def test_the_thread_ends_with_the_last_job():
    """Nothing keeps running in the user's process."""
    board = Board(start=_start_thread)
    before = set(threading.enumerate())
    with Progress(True, board, lambda asked: Drawn()).begin(lambda: ProgressFacts("count()")):
        (thread,) = set(threading.enumerate()) - before

    thread.join(timeout=30)
    assert not thread.is_alive()
    assert thread.daemon


def test_several_threads_leave_nothing_behind():
    """Entering and leaving are safe together with the ticking."""
    board = Board(start=lambda board: None)
    progress = Progress(True, board, lambda asked: Drawn())

    def jobs():
        for _ in range(500):
            with progress.begin(lambda: ProgressFacts("count()")):
                board.tick()

    threads = [threading.Thread(target=jobs) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert not board.tick()


def test_nothing_begins_where_nothing_is_shown(world):
    """No display, no operation; a choice that fails is none."""
    assert world.begin(asked=False) is None
    assert Progress(None, world.board, lambda asked: 1 / 0).begin(lambda: ProgressFacts("count()")) is None


def test_calls_are_named_after_the_user():
    """The call and its file and line; the cell of a notebook has no file."""
    from dstream.plan import SourceLocation, Step

    call = Call.of_step(Step(".sorted(key=len)", SourceLocation("/home/ada/orders.py", 12), 1, 2), "sample of keys")
    cell = Call.of_step(Step("x" * 500, SourceLocation("/tmp/ipykernel_12/345.py", 2, 7), 1, 2))

    assert (call.title(), call.description()) == (
        "sorted(key=len) orders.py:12",
        "sorted(key=len) at orders.py:12: sample of keys",
    )
    assert cell.title() == f"{'x' * 100}... cell 7, line 2"
    assert Call("count()", None).description() == "count()"
