"""Names of Hazelcast Jet lead to what graphs and processors have here."""

from __future__ import annotations

import re

import pytest

from dstream.core import DAG, AbstractProcessor, Edge, Processor, processors
from dstream.testing import TestInbox, TestOutbox

VERTEX = DAG().new_vertex("a", processors.noop())
OTHER = DAG().new_vertex("b", processors.noop())
CASES = [
    (DAG(), "newVertex", "new_vertex"),
    (DAG(), "addEdge", "edge(edge)"),
    (DAG(), "getInboundEdges", "inbound_edges(name)"),
    (DAG(), "getVertex", "get_vertex"),
    (VERTEX, "setLocalParallelism", "local_parallelism(n)"),
    (VERTEX, "localParallelism", "local_parallelism"),
    (VERTEX, "getName", "name"),
    (Edge.between(VERTEX, OTHER), "allToOne", "all_to_one"),
    (Edge.between(VERTEX, OTHER), "getRoutingPolicy", "routing"),
    (Edge.between(VERTEX, OTHER), "setConfig", "set_config"),
    (Processor(), "tryProcess", "tick()"),
    (AbstractProcessor(), "tryProcess", "try_process"),
    (AbstractProcessor(), "emitFromTraverser", "emit_from_traverser"),
    (AbstractProcessor(), "getLogger", "logger"),
    (TestInbox(), "drainTo", "drain_to"),
    (TestInbox(), "isEmpty", "len(inbox) == 0"),
    (TestOutbox(1), "offerToSnapshot", "offer_to_snapshot"),
    (TestOutbox(1), "bucketCount", "bucket_count"),
]


@pytest.mark.parametrize(("thing", "name", "ours"), CASES)
def test_a_name_of_jet_leads_to_ours(thing, name, ours):
    """The message says what to write."""
    with pytest.raises(AttributeError, match=re.escape(f"{name!r} of Hazelcast Jet's: here it is {ours}") + "$"):
        getattr(thing, name)


def test_each_name_that_is_said_is_there():
    """A message does not lead to a method that has gone."""
    for thing, _, ours in CASES:
        if not ours.startswith("len("):
            assert hasattr(type(thing), ours.partition("(")[0])


def test_another_name_fails_as_ever():
    """Also where a property of the user's reads what is not there."""

    class Careless(AbstractProcessor):
        @property
        def total(self):
            return self.missing

    for thing, name, missing in [(DAG(), "newEdges", "newEdges"), (Careless(), "total", "missing")]:
        with pytest.raises(AttributeError, match=f"object has no attribute '{missing}'"):
            getattr(thing, name)
