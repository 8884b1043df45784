"""The cases of Jet's ExecutionLifecycleTest: what is closed, with what, wherever something fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import dstream as ds
from dstream.core import DAG, Edge, Processor, ProcessorMetaSupplier, ProcessorSupplier, processors
from dstream.errors import IllegalStateError
from dstream.jobs import JobMetrics
from dstream.jobs.state import read_state, written_state
from reducers import to_ilist
from sources import items

FAILURE = ValueError("mock error")


class Mock:
    """What a test tells of the three kinds of objects: which call raises, and with what each was closed."""

    def __init__(self, raises: str = "", is_cooperative: bool = True) -> None:
        self.raises, self.is_cooperative = raises, is_cooperative
        self.closed: dict[str, list[BaseException | None]] = {"processor": [], "supplier": [], "meta": []}

    def passes(self, call: str) -> None:
        """Raise where this is the call that does."""
        if call == self.raises:
            raise FAILURE


class MockProcessor(Processor):
    """Lets items pass."""

    def __init__(self, mock: Mock) -> None:
        self.mock, self.is_cooperative = mock, mock.is_cooperative

    def init(self, outbox: Any, context: Any) -> None:
        self.mock.passes("processor.init")
        self.outbox = outbox

    def process(self, ordinal: int, inbox: Any) -> None:
        self.mock.passes("processor.process")
        inbox.drain_to(self.outbox.offer)

    def complete(self) -> bool:
        self.mock.passes("processor.complete")
        return True

    def close(self, error: BaseException | None) -> None:
        self.mock.closed["processor"].append(error)
        self.mock.passes("processor.close")


class MockSupplier(ProcessorSupplier):
    """Makes them."""

    def __init__(self, mock: Mock) -> None:
        self.mock = mock

    def init(self, context: Any) -> None:
        self.mock.passes("supplier.init")

    def get(self, count: int) -> Sequence[Processor]:
        self.mock.passes("supplier.get")
        return [MockProcessor(self.mock) for _ in range(count)]

    def close(self, error: BaseException | None) -> None:
        self.mock.closed["supplier"].append(error)
        self.mock.passes("supplier.close")


class MockMeta(ProcessorMetaSupplier):
    """Makes their suppliers."""

    def __init__(self, mock: Mock) -> None:
        self.mock = mock

    def init(self, context: Any) -> None:
        self.mock.passes("meta.init")

    def get(self, addresses: Sequence[str]) -> Callable[[str], ProcessorSupplier]:
        self.mock.passes("meta.get")
        return lambda address: MockSupplier(self.mock)

    def close(self, error: BaseException | None) -> None:
        self.mock.closed["meta"].append(error)
        self.mock.passes("meta.close")


def job_of(context: ds.Context, mock: Mock, name: str) -> Any:
    """Return a job in which two such processors stand between a source and a sink."""
    dag = DAG()
    source = dag.new_vertex("source", processors.read(items(1, 2, 3)))
    tested = dag.new_vertex("test", MockMeta(mock)).local_parallelism(2)
    sink = dag.new_vertex("sink", processors.write(to_ilist(name)))
    dag.edge(Edge.between(source, tested)).edge(Edge.between(tested, sink))
    return context.new_job(dag)


def test_a_job_that_completes_closes_all(local_context, request):
    """Jet: when_jobCompletesSuccessfully_then_closeCalled: each of them once, without an error."""
    mock = Mock()
    job_of(local_context, mock, request.node.name).join()

    assert sorted(local_context.get_list(request.node.name)) == [1, 2, 3]
    assert mock.closed == {"processor": [None, None], "supplier": [None], "meta": [None]}


@pytest.mark.parametrize("raises", ["processor.close", "supplier.close", "meta.close"])
def test_what_close_raises_fails_no_job(local_context, request, raises):
    """Jet: when_processorCloseThrows_then_jobSucceeds, and the same of suppliers."""
    mock = Mock(raises)
    job = job_of(local_context, mock, request.node.name)
    job.join()

    assert job.status is ds.JobStatus.COMPLETED
    assert mock.closed == {"processor": [None, None], "supplier": [None], "meta": [None]}


@pytest.mark.parametrize("is_cooperative", [True, False])
@pytest.mark.parametrize("raises", ["processor.init", "processor.process", "processor.complete"])
def test_what_a_processor_raises_fails_the_job(local_context, request, raises, is_cooperative):
    """Jet: when_processorInitThrows, ProcessThrows, CooperativeCompleteThrows, NonCooperativeCompleteThrows."""
    mock = Mock(raises, is_cooperative)
    job = job_of(local_context, mock, request.node.name)
    with pytest.raises(ValueError, match="mock error") as caught:
        job.join()

    assert (job.status, job.failure) == (ds.JobStatus.FAILED, caught.value)
    assert "vertex 'test'" in " ".join(caught.value.__notes__)
    assert [type(each) for of in mock.closed.values() for each in of] == [ValueError] * 4


@pytest.mark.parametrize("raises", ["supplier.init", "supplier.get", "meta.init", "meta.get"])
def test_what_a_supplier_raises_fails_the_job(local_context, request, raises):
    """Jet: when_psInitThrows, psGetThrows, pmsInitThrows, pmsGetThrows_then_jobFails; there is no processor yet."""
    mock = Mock(raises)
    job = job_of(local_context, mock, request.node.name)
    with pytest.raises(ValueError, match="mock error"):
        job.join()

    assert job.status is ds.JobStatus.FAILED
    assert [type(each) for each in mock.closed["meta"]] == [ValueError]
    assert [type(each) for each in mock.closed["supplier"]] == [ValueError] * raises.startswith("supplier")
    assert mock.closed["processor"] == []


def test_a_job_that_fails_leaves_others_alone(local_context, request):
    """Jet: when_oneOfTwoJobsFails_then_theOtherContinues."""
    is_open = threading.Event()
    pipeline = ds.Pipeline()
    pipeline.read_from(items(1)).map(lambda n: is_open.wait(10)).write_to(to_ilist(request.node.name))
    good = local_context.new_job(pipeline)
    with pytest.raises(ValueError, match="mock error"):
        job_of(local_context, Mock("processor.init"), f"{request.node.name}-2").join()

    assert not good.status.has_ended
    is_open.set()
    good.join(10)


def test_a_job_of_a_graph_is_read_from_its_record(local_context, request):
    """Jet: when_jobIsCompleted_then_trackedJobCanQueryJobResult; the counts of its edges are in the record, too."""
    job = job_of(local_context, Mock(), request.node.name)
    job.join()
    state = job._state()
    read = read_state(written_state(state), state.id)

    assert (read.status, read.metrics["stages"].keys()) == (ds.JobStatus.COMPLETED, state.metrics["stages"].keys())
    assert JobMetrics.of(read, read.status, 0.0).stages == job.metrics().stages
    with pytest.raises(IllegalStateError, match="damaged: TypeError: 'many' is no int"):
        read_state(written_state(state).replace(b"[3]", b'["many"]'), state.id)
