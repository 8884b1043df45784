"""What steps keep is loaded also from a storage that others can write to."""

from __future__ import annotations

import operator

import pytest

from collectors import averaging, counting, to_list
from dstream.operators.joins.intervals import IntervalJoin
from dstream.operators.state.keyed_operators import KeyedDistinct, RollingAggregate, StatefulMapping
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi.epochs import EpochTime
from dstream.storage import Settings, open_storage
from dstream.values.time import NO_WATERMARK
from dstream.windows import session, sliding, tumbling
from tests.state.epochs import JOB

_KEY = operator.itemgetter(0)
_OPERATORS = [
    FrameWindows(tumbling(10), (_KEY,), counting()),
    FrameWindows(sliding(10, by=5), (_KEY,), averaging(len)),
    SessionWindows(session(5), (_KEY,), to_list()),
    RollingAggregate(_KEY, counting()),
    StatefulMapping(_KEY, list, lambda state, key, item: state.append(item), "map", 10),
    KeyedDistinct(_KEY, 10),
    IntervalJoin(_KEY, _KEY, 5, 5),
]


@pytest.mark.parametrize("step", _OPERATORS, ids=lambda step: step.kind)
def test_state_of_steps_is_loaded_where_only_plain_types_are(step):
    """Users have no names for what steps keep, so they could not allow it."""
    files = open_storage("memory:", Settings(pickle="restricted")).state_files(JOB)
    moment = EpochTime(1, 0.0, NO_WATERMARK, NO_WATERMARK)
    shard = step.new()
    partials = step.partial(0, iter([(1, "a"), (3, "b")]), moment, 1).of_shards
    list(shard.apply([(0, partials[0])], moment).outputs)

    patched, loaded = step.new(), step.new()
    patched.patch(files.load(files.dump(shard.delta())))
    loaded.load(files.load(files.dump(shard.dump())))
    assert len(patched) == len(loaded) == len(shard) > 0
