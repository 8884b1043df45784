"""What stands in a file of state, and when it is not what was written there."""

from __future__ import annotations

import pytest

from dstream.errors import EngineError, IllegalStateError
from dstream.operators.state.shards import Blob, opened, sealed
from tests.state.counting import Counting
from tests.state.epochs import Epochs


@pytest.mark.parametrize("size", [0, 1, 4095, 100_000])
def test_parts_hold_what_was_sealed(size):
    """Small and large ones."""
    blobs = [Blob("a", b"x" * size), Blob("b", bytes(range(256)))]

    assert opened(sealed(blobs, "file", 3), "file", 3) == blobs


def test_parts_that_get_smaller_are_compressed():
    """Others are not."""
    assert len(sealed([Blob("a", b"x" * 100_000)], "file", 3)) < 1000


@pytest.mark.parametrize("place", [0, 4, 5, 12, 20, -1])
def test_parts_with_a_wrong_byte_are_refused(place):
    """Wherever it is."""
    data = bytearray(sealed([Blob("a", b"x" * 100)], "file", 3))
    data[place] ^= 1

    with pytest.raises(IllegalStateError, match="does not hold what was written there"):
        opened(bytes(data), "file", 3)


@pytest.mark.parametrize(("data", "file", "shard"), [(None, "other", 3), (None, "file", 4), (b"", "file", 3)])
def test_parts_of_others_are_refused(data, file, shard):
    """One of another shard or file, and one that is cut off."""
    sealed_one = sealed([Blob("a", b"x" * 100)], "file", 3) if data is None else data

    with pytest.raises(IllegalStateError):
        opened(sealed_one, file, shard)


def _damaged(epochs: Epochs, damage: str) -> str:
    """Run an epoch, damage its file, and return the name of that."""
    epochs.run(["a"])
    (change,) = epochs.records[0]
    data = bytearray(epochs.files.read(change.file, 0, change.length))
    epochs.files.remove(change.file)
    if damage != "missing":
        data[-1] ^= 1
        epochs.files.write(change.file, bytes(data[:30] if damage == "torn" else data))
    epochs.forget()
    return change.file


@pytest.mark.parametrize(
    ("damage", "words"),
    [("missing", "it is missing"), ("torn", "does not hold what"), ("damaged", "does not hold what was written")],
)
def test_parts_that_are_damaged_name_file_shard_and_step(epochs, damage, words):
    """Row 5 of decision 45: nobody repairs that, and the message says what can be done."""
    file = _damaged(epochs, damage)

    with pytest.raises(IllegalStateError, match=words) as raised:
        epochs.run(["a"])
    said = str(raised.value)
    assert file in said
    assert f"'counts' needs the file {file} for shard {epochs.records[0][0].shard}" in said
    assert "start_at=" in said


def test_parts_in_a_folder_that_fails_are_no_damage(lake, monkeypatch):
    """A disk that cannot be read may be mended: the epoch runs again."""
    epochs = Epochs(lake, Counting())
    epochs.run(["a"])
    epochs.forget()

    def failing(*arguments: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("dstream.filesystem.local._part", failing)
    with pytest.raises(EngineError, match=r"the state of the job .* the disk or the network drive fails"):
        epochs.run(["a"])
