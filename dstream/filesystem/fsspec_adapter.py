"""Files in object stores through obstore, with short error messages."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from obstore.exceptions import BaseError
from obstore.fsspec import FsspecStore

from dstream.filesystem.urls import IN_OBSTORE, short

__all__ = ["FILES"]


class ObjectFiles(FsspecStore):
    """The file system of an object store; it has a subclass for each scheme."""


def _in_words(method: Any) -> Any:
    """Return the method with errors of obstore cut to their first lines."""

    @functools.wraps(method)
    async def called(*args: Any, **options: Any) -> Any:
        try:
            return await method(*args, **options)
        except (BaseError, OSError) as error:
            short(error)
            raise

    return called


for _name, _method in list(vars(FsspecStore).items()):
    if inspect.iscoroutinefunction(_method):
        setattr(ObjectFiles, _name, _in_words(_method))

FILES: dict[str, type[ObjectFiles]] = {
    scheme: type(f"Files_{scheme}", (ObjectFiles,), {"protocol": scheme, "__module__": __name__})
    for scheme in IN_OBSTORE
}
globals().update({kind.__name__: kind for kind in FILES.values()})  # They are pickled by their names.
