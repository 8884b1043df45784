"""Whether fsspec can open URLs of a scheme here, said when a source or a sink is made rather than when it runs."""

from __future__ import annotations

from dstream.errors import SetupError

__all__ = ["check_scheme"]


def check_scheme(scheme: str, purpose: str) -> None:
    """Look for the package that fsspec needs for a scheme.

    Args:
        scheme: such as `"s3"`.
        purpose: what it is for, as the beginning of a message: `"to_files() cannot write to"`.

    Raises:
        ValueError: fsspec knows no such URL.
        SetupError: the package that fsspec needs for it is not installed.
    """
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise SetupError(f"{purpose} {scheme}://: {error}") from error
    except ValueError as error:
        raise ValueError(f"fsspec knows no URLs of {scheme}://") from error
