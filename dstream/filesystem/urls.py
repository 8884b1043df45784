"""URLs of fsspec, and the settings of S3 from the environment and from a profile.

The names are defined by the tools of AWS. Two libraries read them, s3fs and obstore, each of which supports a subset;
this module passes the rest to them. Each process reads its own environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from dstream.base.environment import pip_install
from dstream.base.records import record
from dstream.errors import SetupError

__all__ = ["IN_OBSTORE", "URL", "check_scheme", "obstore_options", "opened_url", "s3fs_options", "short"]


URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")
"""The beginning of a URL of fsspec; `zip::s3://...` leads through two file systems."""

IN_OBSTORE = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss"})
"""Schemes that obstore supports, which the default storage needs too."""

_S3 = frozenset({"s3", "s3a"})
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEYS = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
_DEBUG = "\n\nDebug source:"


@record
class ProfileCredentials:
    """The credentials of a profile, which each process reads from its own files when it needs them.

    Attributes:
        profile: its name.
    """

    profile: str

    def __call__(self) -> dict[str, Any]:
        """Return the credentials in the format of obstore.

        Raises:
            SetupError: the profile has none in a supported format.
        """
        found = _profile(self.profile)
        if any(name not in found for name in _KEYS):
            raise SetupError(
                f"the profile {self.profile!r} of AWS_PROFILE has no aws_access_key_id and aws_secret_access_key; "
                'write them there, or put the credentials into the environment: eval "$(aws configure '
                'export-credentials --format env)"'
            )
        keys = {ours: found[name] for name, ours in _KEYS.items()}
        return {**keys, "token": found.get("aws_session_token"), "expires_at": None}


def obstore_options(scheme: str) -> dict[str, Any]:
    """Return the options of obstore for a store, besides the options that it reads from the environment.

    Raises:
        SetupError: the environment names a profile that does not exist.
    """
    if scheme not in _S3:
        return {}
    name = os.environ.get("AWS_PROFILE")
    profile = _checked_profile(name)
    endpoint, region = _first(_ENDPOINTS) or profile.get("endpoint_url"), _first(_REGIONS) or profile.get("region")
    found: dict[str, Any] = {}
    config = {name: value for name, value in (("endpoint", endpoint), ("region", region)) if value}
    if config:
        found["config"] = config
    if endpoint is not None and endpoint.startswith("http://"):
        # obstore refuses plain HTTP, which servers for tests speak, unless it is allowed (0.12).
        found["client_options"] = {"allow_http": True}
    # obstore reads keys from the environment itself, and no profiles (0.12).
    if name is not None and "AWS_ACCESS_KEY_ID" not in os.environ:
        found["credential_provider"] = ProfileCredentials(name)
    return found


def s3fs_options() -> dict[str, Any]:
    """Return the options of s3fs, which reads the profile itself."""
    found: dict[str, Any] = {}
    endpoint, region = _first(_ENDPOINTS), _first(_REGIONS)
    if endpoint is not None:
        found["endpoint_url"] = endpoint
    if region is not None:
        found["client_kwargs"] = {"region_name": region}
    return found


def short(error: BaseException) -> BaseException:
    """Cut obstore's own structures from the text of an error, and return the error."""
    if error.args and isinstance(error.args[0], str) and _DEBUG in error.args[0]:
        error.args = (error.args[0].partition(_DEBUG)[0], *error.args[1:])
    return error


def _first(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _checked_profile(name: str | None) -> Mapping[str, str]:
    found = _profile(name or "default")
    if name is not None and not found:
        raise SetupError(
            f"there is no profile {name!r}, which AWS_PROFILE names, in {' and '.join(_files())}; "
            "`aws configure` makes one"
        )
    return found


def _files() -> tuple[str, str]:
    return (
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials"),
        os.environ.get("AWS_CONFIG_FILE") or os.path.expanduser("~/.aws/config"),
    )


def _profile(name: str) -> dict[str, str]:
    credentials, config = _files()
    # AWS names a section `[profile name]` in one file and `[name]` in the other.
    of_config = name if name == "default" else f"profile {name}"
    return {**_section(config, of_config, _written(config)), **_section(credentials, name, _written(credentials))}


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=16)
def _section(path: str, name: str, written: float) -> dict[str, str]:
    import configparser  # imported on use: few programs have profiles

    # Secret keys may have a % in them, which `ConfigParser` would interpolate.
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except configparser.Error as error:
        raise SetupError(f"{path} is no file of profiles: {error}") from error
    # The cache is keyed by the time of the file, so credentials that were renewed are read again.
    return dict(parser[name]) if parser.has_section(name) else {}


def check_scheme(scheme: str, purpose: str) -> None:
    """Look for the package that fsspec needs for a scheme.

    Args:
        scheme: such as `"s3"`.
        purpose: its use, as the beginning of a message: `"to_files() cannot write to"`.

    Raises:
        ValueError: fsspec does not support the URL.
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
    """Return the file system of a URL, and the path of the URL in it.

    An object store is reached as the storage is: through obstore where no other package for it is installed, with the
    endpoint, region and profile of the environment.
    """
    import fsspec

    schemes = {link.partition("://")[0] for link in url.split("::")}
    options = {scheme: _options(scheme) for scheme in schemes & IN_OBSTORE}
    # fsspec takes the options of a chain by scheme, and those of a single URL without it.
    given = options if "::" in url else options.get(url.partition("://")[0], {})
    opened: tuple[Any, str] = fsspec.core.url_to_fs(url, **given)
    return opened


def _options(scheme: str) -> dict[str, Any]:
    import fsspec

    kind = _class_of(scheme)
    if kind.__module__ == "dstream.filesystem.fsspec_adapter":
        fsspec.register_implementation(scheme, kind, clobber=True)
        return obstore_options(scheme)
    return s3fs_options() if kind.__module__.startswith("s3fs") else {}


def _class_of(scheme: str) -> Any:
    """Return the class of a file system; obstore's class, if fsspec's own needs a package that is not installed."""
    import fsspec

    try:
        return fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError):
        if scheme not in IN_OBSTORE or find_spec("obstore") is None:
            raise
    from dstream.filesystem.fsspec_adapter import FILES

    return FILES[scheme]
