"""`Collector.of` takes its arguments as Java does."""

from __future__ import annotations

import pytest

from dstream import Collector
from dstream.spi import Characteristics


def test_collector_of_takes_characteristics_without_a_finisher():
    """The finisher may be left out, as in Java, and characteristics may follow at once."""
    plain = Collector.of(list, list.append, list.extend, Characteristics.UNORDERED)

    assert (plain.collect("ab"), plain.characteristics) == (["a", "b"], {Characteristics.UNORDERED})


def test_collector_of_takes_a_finisher_and_characteristics():
    """With both, the finisher comes first."""
    counted = Collector.of(list, list.append, list.extend, len, Characteristics.CONCURRENT, Characteristics.UNORDERED)

    assert (counted.collect("ab"), len(counted.characteristics)) == (2, 2)


@pytest.mark.parametrize("rest", [("no function",), (None,), (len, "UNORDERED"), (Characteristics.UNORDERED, len)])
def test_collector_of_refuses_what_is_neither(rest):
    """Anything else is refused at the call."""
    with pytest.raises(TypeError, match=r"Collector"):
        Collector.of(list, list.append, list.extend, *rest)
