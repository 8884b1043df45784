"""How URLs of files are opened with fsspec, and whether it can, said when a source or a sink is made."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from dstream.errors import SetupError
from dstream.values.distribution import pip_install
from dstream.values.object_stores import IN_OBSTORE, obstore_options, s3fs_options

__all__ = ["check_scheme", "opened_url"]


def check_scheme(scheme: str, purpose: str) -> None:
    """Look for the package that fsspec needs for a scheme.

    Args:
        scheme: such as `"s3"`.
        purpose: what it is for, as the beginning of a message: `"to_files() cannot write to"`.

    Raises:
        ValueError: fsspec knows no such URL.
        SetupError: the package that fsspec needs for it is not installed.
    """
    try:
        _class_of(scheme)
    except ImportError as error:
        needed = f"{pip_install('object-store')}, or: {error}" if scheme in IN_OBSTORE else str(error)
        raise SetupError(f"{purpose} {scheme}://: {needed}") from error
    except ValueError as error:
        raise ValueError(f"fsspec knows no URLs of {scheme}://") from error


def opened_url(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and how it calls what stands there.

    An object store is reached as the storage is: through obstore where no other package for it is installed, with the
    endpoint, region and profile of the environment.
    """
    import fsspec

    schemes = {link.partition("://")[0] for link in url.split("::")}
    options = {scheme: _options(scheme) for scheme in schemes & IN_OBSTORE}
    given = options if "::" in url else options.get(url.partition("://")[0], {})
    opened: tuple[Any, str] = fsspec.core.url_to_fs(url, **given)
    return opened


def _options(scheme: str) -> dict[str, Any]:
    import fsspec

    kind = _class_of(scheme)
    if kind.__module__ == "dstream.values.object_files":
        fsspec.register_implementation(scheme, kind, clobber=True)
        return obstore_options(scheme)
    return s3fs_options() if kind.__module__.startswith("s3fs") else {}


def _class_of(scheme: str) -> Any:
    """Return the class of a file system; that of obstore, if fsspec's own needs a package that is not installed."""
    import fsspec

    try:
        return fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError):
        if scheme not in IN_OBSTORE or find_spec("obstore") is None:
            raise
    from dstream.values.object_files import FILES

    return FILES[scheme]
