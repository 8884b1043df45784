"""Processors of the user's where a stream or a pipeline begins, and where it ends."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from collectors import counting
from dstream import Context, Pipeline, connect
from dstream.core import (
    AbstractProcessor,
    Outbox,
    ProcessorContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    processors,
    traverse,
)
from dstream.engine.auto import placement
from dstream.engine.auto.placement import MOST_ITEMS, held_items
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.jobs import JobStatus
from dstream.plan import ToList, rewrite
from dstream.plan.walk import topological
from dstream.spi.sink import Collections
from dstream.stream.processors import emitted
from dstream.windows import tumbling
from reducers import to_ilist, to_processor
from sources import Items, from_processor, stream_from_processor, stream_of, text_files
from tests.conftest import EngineUnderTest
from tests.house.test_connectors import SINKS, SOURCES
from tests.jobs.unbounded.counting_processors import Numbers as Counting
from tests.jobs.unbounded.streams import eventually

COUNT = 50


class Numbers(AbstractProcessor):
    """Share the numbers below `COUNT`."""

    def start(self, context: ProcessorContext) -> None:
        self.numbers = traverse(range(context.index, COUNT, context.total_parallelism))

    def complete(self) -> bool:
        return self.emit_from_traverser(self.numbers)


class Indexed(AbstractProcessor):
    """Share the numbers below `COUNT`, each with who emits it."""

    def start(self, context: ProcessorContext) -> None:
        shared = range(context.index, COUNT, context.total_parallelism)
        self.numbers = traverse([(context.index, number) for number in shared])

    def complete(self) -> bool:
        return self.emit_from_traverser(self.numbers)


class Failing(AbstractProcessor):
    """Fails behind its first number."""

    def complete(self) -> bool:
        self.try_emit(1)
        raise ValueError("no second number")


class Filing(AbstractProcessor):
    """Writes its items into a file of its own, and when it was done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, context: ProcessorContext) -> None:
        self.file = (self.folder / f"{context.index} of {context.total_parallelism}.txt").open("a")

    def try_process(self, ordinal: int, item: object) -> bool:
        if item == "bad":
            raise ValueError("cannot file it")
        self.file.write(f"{item}\n")
        return self.try_emit("emitted, and goes nowhere")

    def complete(self) -> bool:
        self.file.write("done\n")
        return True

    def close(self, error: BaseException | None) -> None:
        self.file.close()


class Filings(ProcessorSupplier):
    """Makes those that file into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, count: int) -> list[Filing]:
        return [Filing(self.folder) for _ in range(count)]


class OfMap(ProcessorMetaSupplier):
    """Knows a map by its name: processors emit how many entries it had when it was opened."""

    def __init__(self, name: str, size: int = -1) -> None:
        self.name, self.size = name, size

    def opened(self, context: Collections) -> OfMap:
        return OfMap(self.name, len(context.get_map(self.name)))

    def get(self, addresses: object) -> object:
        supplier = Sized(self.size)
        return lambda address: supplier


class Sized(ProcessorSupplier):
    """Makes processors that emit a number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def get(self, count: int) -> list[AbstractProcessor]:
        return [Saying(self.size) for _ in range(count)]


class Saying(AbstractProcessor):
    def __init__(self, item: object) -> None:
        self.item = item

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)

    def complete(self) -> bool:
        return self.try_emit(self.item)


def filed(folder: Path) -> dict[str, list[str]]:
    """Return the lines of each file."""
    return {each.stem: each.read_text().splitlines() for each in folder.iterdir()}


def test_a_stream_has_what_processors_emit(engine: EngineUnderTest) -> None:
    """All of it, whoever reads it and however often; steps follow as behind any source."""
    numbers = engine.context.read(from_processor("numbers", Numbers))

    assert sorted(numbers.map(lambda n: n * 2)) == list(range(0, 2 * COUNT, 2))
    assert numbers.filter(lambda n: n % 5 == 0).count() == COUNT // 5


def test_processors_take_the_items_of_a_stream(engine: EngineUnderTest, tmp_path: Path) -> None:
    """Each once; all of them complete, and what they emit goes nowhere."""
    result = engine.context.stream(range(COUNT), 3).map(str).collect(to_processor("filing", Filings(tmp_path)))

    lines = [line for each in filed(tmp_path).values() for line in each]
    assert result is None
    assert sorted(line for line in lines if line != "done") == sorted(map(str, range(COUNT)))
    assert lines.count("done") == len(filed(tmp_path))
    assert all(each[-1] == "done" for each in filed(tmp_path).values())


def test_a_pipeline_begins_and_ends_with_processors(engine: EngineUnderTest, tmp_path: Path) -> None:
    """As many as the stages say, and beside another sink, which takes the same items."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(from_processor("numbers", Numbers)).set_local_parallelism(3)
    numbers.write_to(to_ilist(tmp_path.name))
    sink = numbers.map(str).write_to(to_processor("filing", Filings(tmp_path))).set_local_parallelism(2)
    job = engine.context.new_job(pickle.loads(pickle.dumps(pipeline)))
    job.join()
    files = filed(tmp_path)

    assert sorted(engine.context.get_list(tmp_path.name)) == list(range(COUNT))
    assert sorted(files) == ["0 of 2", "1 of 2"]
    assert sorted(int(line) for each in files.values() for line in each[:-1]) == list(range(COUNT))
    stages = job.metrics().stages
    assert (numbers.name, sink.name) == ("numbers", "filing")
    assert stages["numbers"].items_out_by_edge == stages["filing"].items_in_by_edge == (COUNT,)


def test_stages_of_processors_have_their_names(local_context: Context, tmp_path: Path) -> None:
    """Unless another one is given, under which their items are counted then; one that is taken is refused."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(from_processor("numbers", Numbers), "other").set_local_parallelism(1)
    sink = numbers.map(lambda n: n).set_name("numbers").write_to(to_processor("filing", Filings(tmp_path)))
    with pytest.raises(IllegalStateError, match="has that name already"):
        pipeline.read_from(from_processor("numbers", Numbers))
    with pytest.raises(IllegalStateError, match="has that name already"):
        numbers.write_to(to_processor("filing", Filings(tmp_path)))
    assert (numbers.name, sink.name) == ("other", "filing")
    sink.set_name("files").set_local_parallelism(1)
    job = local_context.new_job(pipeline)
    job.join()

    stages = job.metrics().stages
    assert stages["other"].items_out_by_edge == stages["files"].items_in_by_edge == (COUNT,)
    assert (stages["numbers"].items_out, stages["numbers"].items_out_by_edge) == (COUNT, None)


def test_the_table_of_connectors_is_right_about_processors(engine: EngineUnderTest, tmp_path: Path) -> None:
    """Replayable and distributed; a run again emits, and gives, all items again. Checkpointed are endless ones."""
    assert SOURCES["from_processor"] == ["yes", "yes", "no", "yes", "emits again"]
    assert SOURCES["stream_from_processor"] == ["no", "yes", "yes", "yes", "goes on where it stood"]
    assert SINKS["to_processor"] == ["yes", "at least once", "gives again"]
    for _ in range(2):
        pipeline = Pipeline()
        numbers = pipeline.read_from(from_processor("numbers", Indexed)).set_local_parallelism(2)
        numbers.write_to(to_processor("filing", Filings(tmp_path))).set_local_parallelism(2)
        engine.context.new_job(pipeline).join()
    lines = [line for each in filed(tmp_path).values() for line in each if line != "done"]

    assert sorted(filed(tmp_path)) == ["0 of 2", "1 of 2"]
    assert sorted(lines) == sorted(2 * [f"({n % 2}, {n})" for n in range(COUNT)])


def test_processors_that_go_on_for_ever_are_checkpointed(tmp_path: Path) -> None:
    """A job that goes on with another driver has each item once; both tasks have some."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(stream_from_processor("numbers", Counting)).set_local_parallelism(2)
    numbers.write_to(to_ilist("numbers"))
    for _ in range(2):
        with connect(engine="local", storage=str(tmp_path)) as ctx:
            job = ctx.new_job(pipeline, name="numbers")
            before = len(ctx.get_list("numbers"))
            eventually(lambda ctx=ctx, before=before: len(ctx.get_list("numbers")) > before + 20)
            assert job.status is JobStatus.RUNNING
    with connect(engine="local", storage=str(tmp_path)) as ctx:
        found = list(ctx.get_list("numbers"))
    sizes = [len([n for index, n in found if index == each]) for each in range(2)]

    assert sorted(found) == [(index, n) for index, size in enumerate(sizes) for n in range(size)]
    assert all(sizes)


def test_several_stages_end_in_processors(local_context: Context, tmp_path: Path) -> None:
    """`pipeline.write_to(sink, *stages)` gives them the items of all."""
    pipeline = Pipeline()
    one, other = pipeline.read_from(Items(["a", "b"])), pipeline.read_from(Items(["c"]))
    pipeline.write_to(to_processor("filing", Filings(tmp_path)), one, other).set_local_parallelism(1)
    local_context.new_job(pipeline).join()

    assert sorted(filed(tmp_path)["0 of 1"]) == ["a", "b", "c", "done"]


def test_a_failure_names_the_processors(engine: EngineUnderTest, tmp_path: Path) -> None:
    """The step, the place, and the item where there is one."""
    with pytest.raises(ValueError, match="cannot file it") as taken:
        engine.context.stream(["good", "bad"]).collect(to_processor("filing", Filings(tmp_path)))
    with pytest.raises(ValueError, match="no second number") as emitted:
        engine.context.read(from_processor("numbers", Failing)).to_list()

    assert ".to_processor('filing') at " in str(taken.value.__notes__)
    assert "on the item 'bad'" in str(taken.value.__notes__)
    assert "read(from_processor('numbers')) at " in str(emitted.value.__notes__)


def test_suppliers_see_the_collections(local_context: Context) -> None:
    """In a stream they are opened when it is made, in a pipeline when the job starts."""
    local_context.get_map("sizes").put_all({1: 1, 2: 2})
    pipeline = Pipeline()
    pipeline.read_from(from_processor("size", OfMap("sizes"))).set_local_parallelism(1).write_to(to_ilist("sizes"))
    stream = local_context.read(from_processor("size", OfMap("sizes")))
    local_context.get_map("sizes").put(3, 3)
    local_context.new_job(pipeline).join()

    assert set(stream) == {2}
    assert list(local_context.get_list("sizes")) == [3]


def test_a_stream_does_not_read_processors_that_go_on_for_ever(local_context: Context) -> None:
    """Pipelines do."""
    with pytest.raises(UnsupportedError, match=r"stream_from_processor\('numbers'\) has no end: pipeline.read_from"):
        local_context.read(stream_from_processor("numbers", Numbers))  # type: ignore[arg-type]


def test_processors_take_what_nothing_else_takes_silently(local_context: Context, tmp_path: Path) -> None:
    """A sink of them is refused where a job has letters or late items for it, and in graphs; letters of a stream go."""
    sink = to_processor("filing", Filings(tmp_path))
    letters = Pipeline()
    letters.read_from(Items(["1", "x"])).map(int).on_error(ValueError, into=sink).write_to(to_ilist("o"))
    late = Pipeline()
    window = late.read_from(stream_of([1])).add_timestamps(int).window(tumbling(5), late_to=sink)
    window.aggregate(counting()).write_to(to_ilist("o"))
    for pipeline in (letters, late):
        with pytest.raises(UnsupportedError, match=r"to_processor\('filing'\) takes the items of stream.collect"):
            local_context.new_job(pipeline).join(20)
    with pytest.raises(TypeError, match="made of processors"):
        processors.write(sink)
    with pytest.raises(TypeError, match="made of processors"):
        processors.read(from_processor("numbers", Numbers))

    assert local_context.stream(["1", "x"]).map(int).on_error(ValueError, into=sink).to_list() == [1]
    [letter] = [line for each in filed(tmp_path).values() for line in each if line != "done"]
    assert letter.startswith("DeadLetter(item='x'")


class Started(ProcessorMetaSupplier):
    """Knows the folder of its processors when it was started, until it was asked for them."""

    def __init__(self, folder: Path) -> None:
        self.known, self.folder = folder, Path("unknown")

    def init(self, context: object) -> None:
        self.folder = self.known

    def get(self, addresses: object) -> object:
        folder, self.folder = self.folder, Path("unknown")
        return lambda address: Filings(folder)


def opaque(item: object) -> object:
    """Return an item, in a way whose cost is unknown."""
    while True:
        return item


def test_suppliers_are_started_behind_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: the plan that was compiled for the estimate is not the one with the suppliers that they gave."""
    monkeypatch.setattr(placement, "_LOADING", {})
    text, filing = tmp_path / "text", tmp_path / "filing"
    text.write_text("the sea\nthe ship\n")
    filing.mkdir()
    with connect(engine="auto", storage="memory:") as ctx:
        ctx.read(text_files(str(text))).map(opaque).collect(to_processor("filing", Started(filing)))

    assert sorted(line for each in filed(filing).values() for line in each[:-1]) == ["the sea", "the ship"]


def test_failures_of_processors_are_not_handled_item_by_item() -> None:
    """No function of the user's runs on each item; a second reader would have found processors that share a state."""
    numbers = Pipeline().read_from(stream_from_processor("numbers", Numbers))
    for refused in (numbers, numbers.custom_transform("filing", Numbers)):
        with pytest.raises(IllegalStateError, match="is about the step before it"):
            refused.ignore(ValueError)


def test_processors_may_emit_any_number_though_a_stream_has_no_items_yet() -> None:
    """The default engine does not know how many they emit: more than those that run here without an estimate."""
    plan = rewrite(ToList(emitted(from_processor("numbers", Numbers), "read", None)))

    assert held_items(topological(plan)) > MOST_ITEMS


@pytest.mark.parametrize("make", [from_processor, stream_from_processor, to_processor])
def test_wrong_arguments_are_refused_at_the_call(make) -> None:
    """A name that is none, and what makes no processor."""
    with pytest.raises(TypeError, match="name must be a str, not int"):
        make(1, Numbers)
    with pytest.raises(ValueError, match="name must not be empty"):
        make(" ", Numbers)
    with pytest.raises(TypeError, match="a vertex takes a function that makes a processor"):
        make("numbers", 5)


def test_plans_show_the_processors(tmp_path: Path) -> None:
    """By the calls that the user wrote; nothing starts for it."""
    with connect(engine="local", storage=str(tmp_path)) as ctx:
        read = ctx.read(from_processor("numbers", Numbers)).explain("dot")
        written = ctx.stream([1]).explain("dot", into=to_processor("filing", Filings(tmp_path)))

    assert "read(from_processor('numbers'))" in read
    assert ".to_processor('filing')" in written
