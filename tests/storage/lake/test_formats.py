"""A collection that another version of dstream has written is refused before anything in it is called damaged."""

from __future__ import annotations

import json

import pytest

from dstream.errors import IllegalStateError, SetupError
from dstream.filesystem.checksums import seal
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage

HEAD = b'{"crc32":"'


@pytest.fixture
def name_file(tmp_path):
    """The file of the name of a map."""
    with_map(tmp_path)
    [found] = tmp_path.rglob("names/map/m/*.json")
    return found


def with_map(folder):
    """Return a map in a folder, opened anew."""
    return open_storage(str(folder), Settings()).create("map", "m", Options())


def rewritten(file, **changes):
    """Write a name as another version would: whole, with its checksum."""
    content = {**json.loads(file.read_bytes()), **changes}
    del content["crc32"]
    kept = {name: value for name, value in content.items() if value is not None}
    file.write_bytes(seal(HEAD, b'",' + json.dumps(kept).encode()[1:]))


@pytest.mark.parametrize(("stored", "has"), [(3, "format 3"), (None, "no format"), ("2", "format 2")])
def test_a_collection_of_another_format_is_refused(tmp_path, name_file, stored, has):
    """Also where its description has other fields than this version knows."""
    rewritten(name_file, format=stored, options={"new": 1})

    with pytest.raises(SetupError, match=rf"the collection names/map/m/\S+ of .* has {has}; this dstream reads 2"):
        with_map(tmp_path)


def test_a_damaged_name_is_no_other_format(tmp_path, name_file):
    """Its checksum says so."""
    name_file.write_bytes(name_file.read_bytes().replace(b'"format"', b'"fermat"'))

    with pytest.raises(IllegalStateError, match="is not what was written there"):
        with_map(tmp_path)


def test_a_table_of_another_format_is_refused(tmp_path):
    """Its log says it too, for readers that have the description already."""
    with_map(tmp_path).update(["a"], lambda old: [1])
    [commit] = tmp_path.rglob("_delta_log/*00.json")

    assert '"dstream.format":"2"' in commit.read_text().replace(" ", "")
