"""How S3 is reached: one reading of the environment and of a profile, for files and for the storage alike.

The names are those of the tools of AWS. Two libraries read them, s3fs and obstore, each of which knows some of them;
what one of them would miss is handed to it here. Each process reads its own environment.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dstream.errors import SetupError

__all__ = ["IN_OBSTORE", "ProfileCredentials", "obstore_options", "s3fs_options", "short"]

IN_OBSTORE = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss"})
"""Schemes that obstore takes, which the default storage needs too."""

_S3 = frozenset({"s3", "s3a"})
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEYS = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
_DEBUG = "\n\nDebug source:"


@dataclass(frozen=True, slots=True)
class ProfileCredentials:
    """The credentials of a profile, which each process reads from its own files when it needs them.

    Attributes:
        profile: its name.
    """

    profile: str

    def __call__(self) -> dict[str, Any]:
        """Return them as obstore takes them.

        Raises:
            SetupError: the profile has none in words that can be read here.
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
    """Return what obstore is given for a store, beside what it reads from the environment itself.

    Raises:
        SetupError: the environment names a profile that is not there.
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
        found["client_options"] = {"allow_http": True}
    if name is not None and "AWS_ACCESS_KEY_ID" not in os.environ:
        found["credential_provider"] = ProfileCredentials(name)
    return found


def s3fs_options() -> dict[str, Any]:
    """Return what s3fs is given, which reads the profile itself."""
    found: dict[str, Any] = {}
    endpoint, region = _first(_ENDPOINTS), _first(_REGIONS)
    if endpoint is not None:
        found["endpoint_url"] = endpoint
    if region is not None:
        found["client_kwargs"] = {"region_name": region}
    return found


def short(error: BaseException) -> BaseException:
    """Cut what obstore shows of its own structures from the text of an error, and return the error."""
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
    of_config = name if name == "default" else f"profile {name}"
    return {**_section(config, of_config, _written(config)), **_section(credentials, name, _written(credentials))}


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=16)
def _section(path: str, name: str, written: float) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except configparser.Error as error:
        raise SetupError(f"{path} is no file of profiles: {error}") from error
    return dict(parser[name]) if parser.has_section(name) else {}
