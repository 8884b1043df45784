"""Names of Jet's processors, and typing errors, lead to what the library has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reducers
import sources
from dstream.core import processors
from dstream.pipeline import BatchStage
from dstream.suggestions.streams import _JET


def offered(name):
    """Return what the message about a missing name offers."""
    with pytest.raises(AttributeError) as caught:
        getattr(processors, name)
    message = str(caught.value)
    assert message.startswith(f"dstream.core.processors has no {name!r}")
    return message.partition("; use ")[2]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("aggregateByKeyP", "aggregate_by_key"),
        ("coAggregateByKeyP", "aggregate_by_key"),
        ("flatMapUsingServiceP", "flat_map_using"),
        ("readMapP", "read(imap(name))"),
        ("streamFilesP", "read(watch_files(folder))"),
        ("mergeMapP", 'write(to_imap(name, merge=..., on_existing="merge"))'),
        ("nonCooperativeP", "is_cooperative = False, an attribute of the processor"),
        ("sortP", "sorted(key=...) of a stage, in a pipeline"),
        ("accumulateByFrame", "accumulate_by_frame"),
        ("agregate", "aggregate"),
        ("xyzzy", ""),
        ("_private", ""),
    ],
)
def test_a_name_of_jet_leads_to_ours(name, meant):
    """What has no counterpart leads nowhere."""
    assert offered(name) == meant


def test_what_is_offered_is_there():
    """Each processor, source, sink and method that a message names; and no name that is offered for is one of ours."""
    known = {*processors.__all__, *reducers.__all__, *sources.__all__, *dir(BatchStage), "is_cooperative"}
    named = {word for meant in _JET.values() for word in re.findall(r"^\w+|(?<=\()\w+(?=\()", meant)}

    assert named - known == set()
    assert not any(hasattr(processors, name) for name in _JET)


def test_every_name_on_the_page_leads_somewhere():
    """Those of Jet's `Processors`, `SourceProcessors`, `SinkProcessors` and `DiagnosticProcessors`."""
    page = Path(__file__).parents[3] / "docs" / "reference" / "processors.md"
    names = {
        name for line in page.read_text().splitlines() for name in re.findall(r"`(\w+P)`", line.partition(" | ")[0])
    }

    assert len(names) > 50
    assert [name for name in sorted(names) if not offered(name)] == []
