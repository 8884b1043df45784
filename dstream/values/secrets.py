"""Secrets in URLs: what may be shown of a URL, and of an error that tells of one.

Every message, `repr` and line of `dstream doctor` that holds a URL of the user passes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["credentials_in", "scrub", "shown_url", "without_secrets"]

_HIDDEN = "***"
_CHAINED = re.compile(r"::(?=[A-Za-z][\w+.-]*://)")
_IN_TEXT = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"<>]*")
_PARAMETER = re.compile(r"([?&;#])([^=&;#?]*)=([^&]*)")
_PLAIN_USER = re.compile(r"[\w.%+-]*")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|credential|sig", re.IGNORECASE)
_REDIS = frozenset({"redis", "rediss", "unix"})
_WITHOUT_PORT = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss", "file"})
_CONTAINER = frozenset({"abfs", "abfss"})
"""Schemes in which a name before the @ is no user: abfss://container@account."""
_SHORTEST = 3
"""A shorter text is part of half the words of a message, and no secret."""


def shown_url(url: str) -> str:
    """Return a URL as it may be shown: without its password, and without parameters that sound secret.

    A password with a `/`, `?` or `#` in it should have been percent-encoded. It is hidden all the same, if
    need be with the host. A path is returned as it is.

    Example:
        >>> shown_url("redis://ada:secret@host:6379/0?ssl_password=secret")
        'redis://ada:***@host:6379/0?ssl_password=***'
    """
    return "::".join(map(_shown_link, _CHAINED.split(url)))


def _shown_link(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    credentials = credentials_in(url)
    if credentials is not None:
        rest = f"{_shown_credentials(scheme.lower(), credentials)}@{rest[len(credentials) + 1 :]}"
    return f"{scheme}://{_PARAMETER.sub(_shown_parameter, rest)}"


def credentials_in(url: str) -> str | None:
    """Return what stands before the @ that ends the user information of a URL; None if there is none."""
    scheme, _, rest = url.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in place and scheme.lower() not in _REDIS:
        return place.rpartition("@")[0]
    return rest.rpartition("@")[0] if "@" in rest and _is_torn(scheme.lower(), place) else None


def _is_torn(scheme: str, place: str) -> bool:
    """Say whether an @ further back ends a password that has a slash, a ? or a # in it."""
    host, colon, port = place.rpartition(":")
    is_port = not colon or (host and port.isdigit() and scheme not in _WITHOUT_PORT)
    return scheme in _REDIS or not is_port


def _shown_credentials(scheme: str, credentials: str) -> str:
    user, colon, _ = credentials.partition(":")
    if colon:
        return f"{user if _PLAIN_USER.fullmatch(user) else _HIDDEN}:{_HIDDEN}"
    return credentials if scheme in _CONTAINER else _HIDDEN


def _unquoted(text: str) -> str:
    from urllib.parse import unquote  # here: it takes a hundredth of the time of `import dstream`

    return unquote(text)


def _shown_parameter(found: re.Match[str]) -> str:
    mark, name, _ = found.groups()
    return f"{mark}{name}={_HIDDEN}" if _SECRET_NAME.search(_unquoted(name)) else found[0]


def without_secrets(text: str) -> str:
    """Return a message with every URL in it as it may be shown."""
    return _IN_TEXT.sub(lambda found: shown_url(found[0]), text)


def scrub(error: BaseException, url: str = "") -> None:
    """Hide the secrets of a URL in what an exception says, in its notes, and in the exceptions that led to it.

    Libraries quote what they were given, a server quotes the command that it did not understand.
    """
    secrets = sorted(set(_secrets(url)), key=len, reverse=True)
    for each in _chain(error):
        each.args = tuple(_scrubbed(part, url, secrets) if isinstance(part, str) else part for part in each.args)
        if hasattr(each, "__notes__"):
            each.__notes__ = [_scrubbed(note, url, secrets) for note in each.__notes__]
        if isinstance(each, OSError) and isinstance(each.filename, str):
            each.filename = _scrubbed(each.filename, url, secrets)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += [each.__cause__, each.__context__]
            yield each


def _scrubbed(text: str, url: str, secrets: list[str]) -> str:
    text = without_secrets(text.replace(url, shown_url(url)) if url else text)
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(url: str) -> Iterator[str]:
    """Give the secrets of a URL, as they are written there and as they are meant."""
    for link in _CHAINED.split(url):
        password = (credentials_in(link) or "").partition(":")[2]
        parameters = [found[3] for found in _PARAMETER.finditer(link) if _SECRET_NAME.search(_unquoted(found[2]))]
        for secret in (password, *parameters):
            yield from (text for text in (secret, _unquoted(secret)) if len(text) >= _SHORTEST)
