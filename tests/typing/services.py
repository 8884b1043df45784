"""Services and views of maps; two type checkers read this file, nothing runs it."""

from __future__ import annotations

import io
from typing import Any, assert_type

from dstream import Service, imap_service
from dstream.stream.services import MapView


def services() -> None:
    """What a service makes is what its end takes."""
    assert_type(Service(io.StringIO), Service[io.StringIO])
    assert_type(Service(io.StringIO, io.StringIO.close, shared=False), Service[io.StringIO])
    assert_type(Service(lambda: [1]), Service[list[int]])
    assert_type(imap_service("customers"), Service[MapView[Any, Any]])
    Service(io.StringIO, len)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


def views(view: MapView[str, int]) -> None:
    """Every method of `MapView`."""
    assert_type(view["Ada"], int)
    assert_type(view.get("Ada"), int | None)
    assert_type(view.get("Ada", 0), int)
    assert_type(view.get("Ada", "x"), int | str)
    assert_type(view.get_all(["Ada"]), dict[str, int])
    assert_type(view.get_many(["Ada"]), list[int | None])
    assert_type("Ada" in view, bool)
    assert_type(len(view), int)
