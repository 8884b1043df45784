"""Blocks that wait for their turn."""

from __future__ import annotations

import pytest

from dstream.processors import inbound_edges
from dstream.processors.inbound_edges import BlockQueue

MEGABYTE = 2**20


@pytest.fixture
def written(monkeypatch):
    """The blocks that went into a file."""
    dumps, seen = inbound_edges.dumps, []
    monkeypatch.setattr(inbound_edges, "dumps", lambda block: seen.append(block[0]) or dumps(block))
    return seen


def test_large_items_go_to_disk_however_few_they_are(written):
    """What makes the process grow by megabytes does not wait in memory; all of it comes back in order.

    Tests before this one may have left some tens of megabytes that are free, by which it does not grow.
    """
    blocks, count = BlockQueue(), 200
    for number in range(count):
        blocks.put(number, [bytes([number]) * MEGABYTE])

    assert len(written) > count // 3
    assert [blocks.take() for _ in range(len(blocks))] == [(n, [bytes([n]) * MEGABYTE]) for n in range(count)]


def test_a_first_block_waits_in_memory_however_large_it_is(written):
    """Whoever takes it next has it in memory anyway."""
    blocks = BlockQueue()
    for number in range(3):
        blocks.put(number, [bytes([number]) * 40 * MEGABYTE])
        blocks.take()

    assert written == []


def test_many_small_items_go_to_disk(written):
    """More than a hundred thousand of them."""
    blocks = BlockQueue()
    for number in range(110):
        blocks.put(number, list(range(1000)))

    assert len(written) == 10
